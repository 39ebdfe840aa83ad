# SPDX-License-Identifier: Apache-2.0
# The script is sourced and asked.
source <(embla completion bash)
ask() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _embla
    echo "$*: ${COMPREPLY[*]}"
}
complete -p embla
ask embla ''
ask embla c
ask embla cost --d
ask embla cost g
ask embla cost --dtype q
ask embla cost --dtype = f
ask embla cost --dtype =
ask embla cost --rows ''
ask embla --json cost --li
ask embla bench ''
ask embla completion z
ask embla help be
ask embla cost gpt2 --ngram-dtype ''
