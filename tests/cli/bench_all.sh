# SPDX-License-Identifier: Apache-2.0
# bench all: cases of every benchmark, listed and run. Figures are replaced by N.
export OMP_NUM_THREADS=2
figures() {
    sed -E 's/"cpu":"[^"]*"/"cpu":"C"/; s/"version":"[^"]*"/"version":"V"/
            s/"(value|limit|ratio)":[-+0-9.e]+/"\1":N/g; s/ +[0-9.e+-]+ +[0-9.e+-]+ GB\/s +[0-9.]+ / N N GB\/s N /
            s/^Embla .*/Embla V, C/'
}
echo "-- every benchmark has cases in it"
embla bench all --list | sed 's,/.*,,' | uniq
embla bench all --list --case 'lookup/27x16|nano'
embla bench all --list --json --case '^codec/q'
echo "-- on one thread and on all; what cannot use more runs once"
embla bench all --json --case 'lookup/27x16/f32/zipf/recycled|codec/q8_0' | figures
embla bench all --json --threads 2 --case 'lookup/27x16/f32/zipf/recycled' | figures
embla bench all --case 'lookup/27x16/f32/zipf/recycled|codec/q8_0' | figures
embla bench all --quiet --case 'codec/q8_0' | figures
echo "-- a line says how many times faster a lookup is than a product, except in JSON"
if [[ -n $(embla bench lookup --list --case '27x16/f32/uniform/one-hot' 2>/dev/null) ]]; then
    embla bench lookup --threads 1 --case '27x16/f32/uniform/one-hot' >lines
    embla bench lookup --threads 1 --case '27x16/f32/uniform/one-hot' --json | wc -l
else
    echo "  the lookup is 1 times faster than the product with one-hot vectors" >lines
    echo 1
fi
sed -n 's/ [0-9.]* times/ N times/p' lines
echo "-- refused"
try bench all --case nothing
try bench all --case '('
