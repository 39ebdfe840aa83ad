# SPDX-License-Identifier: Apache-2.0
# A signal ends the work, and nothing is left of it.
. "$SOURCE/tests/cli/models.sh"
make_model big.safetensors a.weight:F32:100000x64
embla convert big.safetensors big.vec >out 2>err &
# not before it has begun to write
while kill -0 $! 2>/dev/null && [[ $(ls -A | wc -l) -le 3 ]]; do sleep 0.01; done
kill -TERM $!
wait $!
echo "exit $?"
cat out err
ls -A
