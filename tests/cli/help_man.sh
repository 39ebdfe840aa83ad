# SPDX-License-Identifier: Apache-2.0
# docs/man has what the program prints: a page for the program and one for each verb, no others. All
# render without a warning. packaging/man writes them again.
verbs=$(embla help --man | sed -n 's/^\.BR embla\\-\(.*\) (1)$/\1/p' | sed 's/\\//g')
[ "$(ls "$SOURCE/docs/man" | wc -l)" = $((1 + $(echo "$verbs" | wc -l))) ] || echo "a page too many or too few"
for verb in "" $verbs; do
    page=embla${verb:+-$verb}.1
    embla help $verb --man >$page
    cmp $page "$SOURCE/docs/man/$page" || continue
    command -v groff >/dev/null && groff -man -Tutf8 -ww $page 2>&1 >/dev/null
    command -v mandoc >/dev/null && mandoc -T lint $page
done
echo "compared"
