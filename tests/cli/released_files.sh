# SPDX-License-Identifier: Apache-2.0
# What each released version has written opens today: tables, a pack, an index, a fit, a compiled
# tokenizer, a training. tests/released/make wrote them. Nothing here is specific to a version.
for release in "$SOURCE"/tests/released/[0-9]*; do
    echo "== ${release##*/}"
    cp -r "$release" there
    cd there
    chmod -R u+w .
    for table in table.safetensors table.gguf table.npy; do try near $table cat --top 2; done
    try near words.safetensors the --top 2
    try pack --verify pack.safetensors
    try rows pack.safetensors 1 2
    try tokens story.tokens "the cat sat on a mat"
    before=$(cksum <lines.txt.embla)
    try search table.safetensors lines.txt "the king" --top 2
    [[ $(cksum <lines.txt.embla) == "$before" ]] && echo "its index was used"
    try search table.safetensors lines.txt "the king" --top 2 --fit fit.safetensors
    # the training goes on from its step 10 to the same model
    mv trained whole
    cp -r whole trained
    rm trained/checkpoints/step-0000000020.safetensors trained/model.safetensors
    embla train names.txt --resume trained --json -q | tail -n 1 | grep -o '"event":"done"'
    cmp whole/model.safetensors trained/model.safetensors && echo "the same model"
    try predict whole emma --top 3
    cd ..
    rm -rf there
done
