# SPDX-License-Identifier: Apache-2.0
# Text comes while it is made; a signal ends it cleanly, with the end of a line.
. "$SOURCE/tests/cli/generate_model.sh"
llama m 6 8
vocab m a b c d e f
for signal in INT TERM; do
    set -m # so that the child does not ignore INT
    embla generate m --tokens 2000000000 >out 2>err &
    set +m
    while kill -0 $! 2>/dev/null && [[ ! -s out ]]; do sleep 0.01; done
    kill -$signal $!
    wait $!
    echo "exit $?"
    cat err
    tail -c 1 out | od -An -c
    head -c 3 out | grep -c '^[a-f]*$'
done
