# SPDX-License-Identifier: Apache-2.0
# --try for programs, as a picture, and what it refuses.
. "$SOURCE/tests/cli/pictures.sh"
seq 300 | tr 0-9 a-j >names.txt
small=(names.txt --preset microgpt --steps 20)
embla train "${small[@]}" --try heads=2,3 --seeds 2 --json |
    sed -E -e "s|$PWD/||" -e 's/"seconds":[0-9.e-]+/"seconds":0/g'
echo "-- a picture"
embla train "${small[@]}" --try dim=4,8,16 --try tied=yes,no --seeds 3 --plot try.svg | tail -n 1 | sed 's/[0-9.]* kB/N kB/'
texts try.svg
grep -c '<circle' try.svg
embla train "${small[@]}" --try dim=4 --plot try.svg -q >/dev/null
grep -c '<circle' try.svg
embla train "${small[@]}" --try heads=2,3 --plot page.html -q >/dev/null
grep -o '<h1>.*</h1>' page.html && grep -o '>failed<' page.html
embla train "${small[@]}" --try dim=4 --plot page.html -q >/dev/null && grep -c '<circle' page.html
printf '<svg><title>Losses of others</title></svg>\n' >other.svg
echo "-- refused"
refused() { try train "$@" | sed "s|$PWD/||g"; }
refused "${small[@]}" --try
refused "${small[@]}" --try dim
refused "${small[@]}" --try dim=
refused "${small[@]}" --try dim=8,,16
refused "${small[@]}" --try dim=8,8
refused "${small[@]}" --try dim=8 --try dim=16
refused "${small[@]}" --try dim=8 --dim 8
refused "${small[@]}" --try tied=yes --untied
refused "${small[@]}" --try tied=maybe
refused "${small[@]}" --try dim=0
refused "${small[@]}" --try dim=wide
refused "${small[@]}" --try rate=fast
refused "${small[@]}" --try positions=alibi
refused "${small[@]}" --try words=10,20
refused "${small[@]}" --try seed=1,2
refused "${small[@]}" --try dim=8 --seeds 0
refused "${small[@]}" --seeds 3
refused "${small[@]}" --try dim=8 --validation 0
refused "${small[@]}" --try dim=8 --watch a
refused "${small[@]}" --try dim=8 --minutes 1
refused "${small[@]}" --try dim=8 --plot names.txt
refused "${small[@]}" --try dim=8 --plot try.csv
refused "${small[@]}" --try dim=8 --plot other.svg
refused "${small[@]}" --try dim=8 -o nowhere/runs
refused "${small[@]}" --try dim=8 -o a --resume a
refused nowhere.txt --try dim=8
refused --try dim=8
refused "${small[@]}" --try dim="$(seq -s, 65)"
refused "${small[@]}" --try dim="$(seq -s, 64)" --try layers="$(seq -s, 64)" --try heads=1,2,4
echo a >short.txt
refused short.txt --try dim=8 --preset microgpt
embla train "${small[@]}" -q -o one >/dev/null
refused names.txt --from one --try token-spread=1
ls
