# SPDX-License-Identifier: Apache-2.0
# A training of words that is killed, and continued: the same bytes. What cannot be continued is said.
cp "$SOURCE/demo/village.txt" "$SOURCE/demo/names.txt" .
text=village.txt
epochs=40
[ -z "${EMBLA_TEST_SLOW:-}" ] || epochs=8
run() { embla words "$text" -o "$@" --clean words --epochs $epochs --subwords 3-5 --buckets 20000 -q; }
run whole.safetensors
for delay in 0.05 0.15 0.3 0.6; do
    rm -f part.*
    {
        timeout -s KILL $delay embla words "$text" -o part.safetensors --clean words --epochs $epochs \
            --subwords 3-5 --buckets 20000 -q --save-every 0
        true # the shell reports the kill here
    } 2>/dev/null
    if [ -e part.safetensors.state ]; then
        run part.safetensors --resume
    elif ! [ -e part.safetensors ]; then # killed before the first state
        run part.safetensors --force
    fi
    cmp whole.safetensors part.safetensors && echo "the same"
done
ls
embla words "$text" -o late.safetensors --clean words --epochs 100000 -q 2>late.err &
while kill -0 $! && [[ ! -e late.safetensors.state ]]; do sleep 0.01; done # saved before the first step
kill -TERM $!
wait $!
sed -E 's/after [0-9.]+ of/after N of/' late.err
try words "$text" -o late.safetensors --clean words --epochs 100000 -q
try words "$text" -o late.safetensors --clean words --epochs 90000 -q --resume
try words "$text" -o late.safetensors --clean letters --epochs 100000 -q --resume
try words names.txt -o late.safetensors --clean words --epochs 100000 --min-count 1 -q --resume | sed -E 's/is [0-9a-f]{32}, not [0-9a-f]{32}/is A, not B/'
try words "$text" -o none.safetensors --resume
