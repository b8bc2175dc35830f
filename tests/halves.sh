#!/bin/sh
# Runs the tests in two processes, each with half of the files; what the second one says follows when both are done.
#
#   tests/halves.sh PYTHON [PYTEST ARGUMENTS]
python=$1
shift
# A process each: more threads of the matrix library, or of boosted trees, would only wait for one another.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$python" -m pytest -q --half 2 "$@" > "$said" 2>&1 &
second=$!
"$python" -m pytest -q --half 1 "$@"
first=$?
wait $second
second=$?
cat "$said"
# 5: nothing to run there, which is right if the other half has all of it.
case "$first $second" in
    "0 0" | "0 5" | "5 0") exit 0 ;;
    *) exit 1 ;;
esac
