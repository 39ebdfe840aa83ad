# SPDX-License-Identifier: Apache-2.0
# For the cases of generate: a small Llama of random numbers, which says nonsense, but always the
# same.
. "$SOURCE/tests/cli/models.sh"

# llama NAME VOCAB POSITIONS ['MORE CONFIG,' [KEY=VALUE]]: a folder without words; the last is for
# its table
llama() {
    folder "$1" "{${4-}\"model_type\":\"llama\",\"vocab_size\":$2,\"hidden_size\":16,
        \"num_hidden_layers\":1,\"num_attention_heads\":2,\"intermediate_size\":24,
        \"max_position_embeddings\":$3,\"rms_norm_eps\":1e-5,\"tie_word_embeddings\":false}"
    local layer=model.layers.0
    make_model "$1/model.safetensors" "model.embed_tokens.weight:F32:${2}x16:${5-seed=1}" \
        "lm_head.weight:F32:${2}x16:seed=2" model.norm.weight:F32:16:seed=3 \
        $layer.input_layernorm.weight:F32:16:seed=4 \
        $layer.post_attention_layernorm.weight:F32:16:seed=5 \
        $layer.self_attn.{q,k,v,o}_proj.weight:F32:16x16:seed=6 \
        $layer.mlp.{up,gate}_proj.weight:F32:24x16:seed=7 \
        $layer.mlp.down_proj.weight:F32:16x24:seed=8
}

# vocab NAME WORD..: its words, token 0 first
vocab() {
    local name=$1 n=0
    shift
    for word; do
        printf '%s"%s":%d' "$([[ $n -gt 0 ]] && echo , || echo {)" "$word" "$n"
        n=$((n + 1))
    done >"$name/vocab.json"
    echo '}' >>"$name/vocab.json"
}

# How long it took is left out.
timeless() { sed 's/,"seconds":.*}/}/'; }
