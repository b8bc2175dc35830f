#!/bin/sh
# Tests the package with the oldest and with the newest of every dependency that pyproject.toml allows, on each Python from
# 3.11 to 3.14 that this machine has. Needs uv.
#
#   requirements/matrix.sh [PYTEST ARGUMENTS]     (default: the fast tests; PYTHONS="3.11 3.13" chooses among Pythons)
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- -m "not slow and not stats"
export UV_PYTHON_DOWNLOADS=never
for folder in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin; do
    PATH="$PATH:$folder" # pyenv shows only the versions that are chosen
done
failed=""
for python in ${PYTHONS:-3.11 3.12 3.13 3.14}; do
    if ! uv python find --system "$python" > /dev/null 2>&1; then
        echo "==> Python $python is not on this machine: left out"
        continue
    fi
    for end in oldest newest; do
        environment=.venv-$end-$python
        resolution=highest
        [ $end = newest ] || resolution=lowest-direct
        echo "==> Python $python with the $end dependencies"
        uv venv --quiet --clear --python "$(uv python find --system "$python" 2> /dev/null)" "$environment"
        install="uv pip install --quiet --python $environment"
        $install --resolution $resolution --only-binary :all: --no-binary pyspark --requirements pyproject.toml --extra test
        # The wheel, built by the tool of this environment; the cache of uv does not see changes of sources.
        $install --no-deps --no-build-isolation --refresh-package sfumato .
        uv pip freeze --python "$environment" 2> /dev/null | tr '\n' ' '
        echo
        sh tests/halves.sh "$environment/bin/python" "$@" || failed="$failed $end-$python"
    done
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
