# SPDX-License-Identifier: Apache-2.0
# Flag and tensors: each combination has a verdict and an exit code, in a file, in shards and
# in a GGUF (which has no flag, whatever lies beside it).
. "$SOURCE/tests/cli/models.sh"
verdict() { # NAME MODEL: the exit code, and what is said about table and head
    local code
    embla doctor "$2" >out 2>&1
    code=$?
    echo "$1: exit $code"
    awk '/^[a-z]+ +(tied|table: no)/ { p = 1 } /^[a-z0-9]/ && !/^[a-z]+ +(tied|table: no)/ { p = 0 }
        / -> / { p = 0 } p { print "    " $0 }' out
}
table=model.embed_tokens.weight:F32:6x4 head=lm_head.weight:F32:6x4 else=model.norm.weight:F32:4
for flag in true false; do
    for what in table head equal different neither; do
        case $what in
        table) set -- $table ;;
        head) set -- $head ;;
        equal) set -- $table $head ;;
        different) set -- $table $head:seed=1 ;;
        neither) set -- ;;
        esac
        for form in file shards gguf; do
            rm -rf model
            folder model "{\"model_type\":\"llama\",\"tie_word_embeddings\":$flag}"
            case $form in
            file) make_model model/model.safetensors "$@" $else ;;
            shards)
                map=
                for tensor in "$@" $else; do
                    make_model "model/${tensor%%.*}.safetensors" "$tensor"
                    map+="${map:+,}\"${tensor%%:*}\":\"${tensor%%.*}.safetensors\""
                done
                [[ $map == *lm_head* && $map == *model.embed* ]] && rm model/model.safetensors
                if [[ $map == *model.embed* ]]; then # two tensors of one shard
                    make_model model/model.safetensors $table $else
                fi
                echo "{\"weight_map\":{$map}}" >model/model.safetensors.index.json
                ;;
            gguf)
                set -- "${@/model.embed_tokens/token_embd}"
                set -- "${@/lm_head/output}"
                make_model model/m.gguf text:general.architecture=llama tokens:a,b,c,d,e,f "$@" \
                    output_norm.weight:F32:4
                ;;
            esac
            verdict "$flag, $what, $form" model
        done
    done
done
