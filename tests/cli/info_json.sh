# SPDX-License-Identifier: Apache-2.0
# What info, doctor, lookup and convert print for programs parses, whatever the words are.
. "$SOURCE/tests/cli/models.sh"
if command -v python3 >/dev/null; then
    check() { python3 -m json.tool >/dev/null; }
elif command -v jq >/dev/null; then
    check() { jq . >/dev/null; }
else
    echo "skipped: neither python3 nor jq is here"
    exit 77
fi
printf '3 2\n\xff"\\ 1 nan\n\x01 inf 2\n\xed\xa0\x80\xc3\xa9 3 4\n' >odd.vec
make_model 'q"uote.safetensors' 'wte.weight:F32:2x2' 'b\"c\\d:F32:3'
for verb in info doctor; do
    for file in odd.vec 'q"uote.safetensors'; do
        embla $verb "$file" --json >out
        check <out && echo "$verb"
    done
done
embla info 'q"uote.safetensors' --all --json | check && echo "info --all"
embla lookup odd.vec --ids 0,1,2 --json | check && echo lookup
embla lookup odd.vec --ids 0,1,2 --format jsonl | while read -r line; do check <<<"$line" && echo jsonl; done
embla convert odd.vec odd.npy --json | check && echo convert
embla lookup odd.vec --ids 0,1,2 --format jsonl
