#!/bin/sh
# Makes an environment with sfumato and the peers it is measured against, and four more beside it, whose names end in
# -local, -limits, -synth and -tumult, with the peers whose requirements contradict the others'.
#
#   benchmarks/install_peers.sh [ENVIRONMENT]     (default .venv-bench; PYTHON chooses the interpreter)
#
# A peer that cannot be installed is reported by the benchmarks as "not installed"; only torch, python-dp and the peers of
# the other environments may fail here.
set -eu
cd "$(dirname "$0")/.."
environment=${1:-.venv-bench}
[ -x "$environment/bin/python" ] || "${PYTHON:-python3}" -m venv "$environment"
pip="$environment/bin/python -m pip install --quiet --disable-pip-version-check"
# torch first and exactly this version, so that opacus finds it and pulls no other build of it.
if $pip torch==2.13.0; then
    $pip --requirement benchmarks/peers.txt
else
    echo "torch 2.13.0 has no wheel here: opacus is left out" >&2
    grep -v -e '^torch' -e '^opacus' benchmarks/peers.txt > "$environment/peers.txt"
    $pip --requirement "$environment/peers.txt"
fi
# Google's C++ library through PyDP: wheels exist for some platforms only, and a source build needs bazel. (The 0.1.0
# wheel that claims every platform holds a library for one; a version is asked for so that it is never chosen.)
$pip --only-binary :all: 'python-dp>=1.1' 2> /dev/null ||
    echo "python-dp (Google's C++ library) has no wheel for this platform: left out" >&2
$pip --editable '.[server]'
"$environment/bin/python" -m pip check
# The second environment. Where the list as a whole has no solution, each peer that can be had by itself is taken.
[ -x "$environment-local/bin/python" ] || "${PYTHON:-python3}" -m venv "$environment-local"
second="$environment-local/bin/python -m pip install --quiet --disable-pip-version-check"
if ! $second --requirement benchmarks/peers-local.txt; then
    for peer in pure-ldp multi-freq-ldpy pycanon anjana; do
        # The list without the other peers, so that what it pins holds for this one too.
        grep -v -e '^pure-ldp' -e '^multi-freq-ldpy' -e '^pycanon' -e '^anjana' benchmarks/peers-local.txt \
            > "$environment-local/peers.txt"
        grep "^$peer" benchmarks/peers-local.txt >> "$environment-local/peers.txt"
        $second --requirement "$environment-local/peers.txt" || echo "$peer cannot be installed: left out" >&2
    done
fi
# The third: Qrlew and SmartNoise. psycopg2, which Qrlew asks for, is compiled where there is no wheel and needs pg_config.
[ -x "$environment-limits/bin/python" ] || "${PYTHON:-python3}" -m venv "$environment-limits"
third="$environment-limits/bin/python -m pip install --quiet --disable-pip-version-check"
if ! $third --requirement benchmarks/peers-limits.txt; then
    for peer in pyqrlew smartnoise-sql; do
        grep -v -e '^pyqrlew' -e '^smartnoise-sql' benchmarks/peers-limits.txt > "$environment-limits/peers.txt"
        grep "^$peer" benchmarks/peers-limits.txt >> "$environment-limits/peers.txt"
        $third --requirement "$environment-limits/peers.txt" || echo "$peer cannot be installed: left out" >&2
    done
fi
# The fourth: mbi, the reference implementation of synthesizers, and JAX.
[ -x "$environment-synth/bin/python" ] || "${PYTHON:-python3}" -m venv "$environment-synth"
"$environment-synth/bin/python" -m pip install --quiet --disable-pip-version-check \
    --requirement benchmarks/peers-synth.txt || echo "mbi cannot be installed: left out" >&2
# The fifth: Tumult Analytics and the Spark that it takes. Its core has compiled parts for x86_64; elsewhere what uses them
# is taken from the next version of the core, which has none, and which Tumult Analytics does not take as a whole.
[ -x "$environment-tumult/bin/python" ] || "${PYTHON:-python3}" -m venv "$environment-tumult"
fifth="$environment-tumult/bin/python -m pip install --quiet --disable-pip-version-check"
if ! $fifth --requirement benchmarks/peers-tumult.txt 2> /dev/null; then
    { $fifth tmlt.core==0.20.0 'tabulate<0.9' 'tqdm<5' 'types-tabulate<0.9' && $fifth --no-deps tmlt.analytics==0.21.0 &&
        "$environment-tumult/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
            --platform manylinux2014_x86_64 --dest "$environment-tumult/core" tmlt.core==0.19.1 &&
        "$environment-tumult/bin/python" benchmarks/tumult_core.py "$environment-tumult"/core/*.whl; } ||
        echo "Tumult Analytics cannot be installed: left out" >&2
fi
