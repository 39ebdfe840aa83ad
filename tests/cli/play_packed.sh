# SPDX-License-Identifier: Apache-2.0
# A compressed text and a compressed table go in as they are read.
. "$SOURCE/tests/cli/module.sh"
command -v gzip >/dev/null || { echo "skipped: there is no gzip"; exit 77; }
cp "$SOURCE"/demo/{fox.vec,names.txt} .
gzip -k fox.vec names.txt
embla play names.txt.gz --steps 3 -o text.html -q
page text.html | grep -o '"path":"/text[^}]*'
files text.html | grep text
sed -n 's|.*class="file" data-path="/text/names.txt.gz">\([^<]*\)</script>|\1|p' text.html | base64 -d | cmp - names.txt
for name in fox.vec fox.vec.gz; do
    embla play $name -o table.html -q --force
    page table.html | grep -o '"name":"fox[^"]*","operand":"[^"]*"'
    field table.html /model/table.safetensors | sha256sum
done
