# SPDX-License-Identifier: Apache-2.0
# The page of the demo: its facts, its files, its policy, and where it is written.
. "$SOURCE/tests/cli/module.sh"
run play -o play.html
page play.html
files play.html
# each file has the bytes of the demo's
for file in $(files play.html); do
    case $file in /model/*) from=story/${file#/model/} ;; *) from=${file#/} ;; esac
    field play.html "$file" | cmp - "$SOURCE/demo/$from"
done
sed -n 's|.*<script type="text/plain" id="module">\([^<]*\)</script>|\1|p' play.html | base64 -d | cmp - "$EMBLA_PLAY/play.wasm.gz"
grep -o '<title>.*</title>' play.html

# the policy allows the page's own style and script: the checksums are those of their text
grep -o 'http-equiv="Content-Security-Policy" content="[^"]*"' play.html | sed -E 's/sha256-[A-Za-z0-9+/]{43}=/sha256-../g'
for tag in style script; do
    bytes=$(grep -obUa -m1 "<$tag>" play.html | cut -d: -f1)
    end=$(grep -obUa "</$tag>" play.html | cut -d: -f1 | awk -v from="$bytes" '$1 > from { print; exit }')
    from=$((bytes + ${#tag} + 2))
    sum=$(tail -c +$((from + 1)) play.html | head -c $((end - from)) | sha256sum | cut -d ' ' -f 1)
    sum=$(printf "$(sed 's/../\\x&/g' <<<"$sum")" | base64)
    if grep -q "$tag-src 'sha256-$sum'" play.html; then echo "$tag: the checksum is right"; fi
    grep -o "<$tag>" play.html | wc -l
done
# nothing is fetched: the only address is the name of SVG
grep -o 'https\?://[a-z.0-9/]*' play.html | sort -u

# no text of a person becomes part of the page
run play -o odd.html --title '</title><script>alert("1")</script> & more' --json
grep -o '<title>.*</title>' odd.html
page odd.html | grep -o '"title":"[^,]*'

# where it goes: as `embla map` does it
try play -o play.html
embla play -o play.html --force -q --title other && grep -o '<title>.*</title>' play.html
for threads in 1 2; do embla play -o t$threads.html --threads $threads -q; done
cmp t1.html t2.html && echo "the same each time"
embla play -o - | cmp - t1.html && echo "standard output"
ls
