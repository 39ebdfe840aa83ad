# SPDX-License-Identifier: Apache-2.0
# Every verb has help, the same from `help VERB` and `VERB --help`, within 80 columns,
# and an example that runs.
mkdir examples
cp "$SOURCE"/examples/*.vec examples
for verb in $(embla help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    embla help "$verb" >one || echo "help $verb: exit $?"
    embla "$verb" --help >two || echo "$verb --help: exit $?"
    cmp one two
    awk 'length > 80' one
    example=$(tail -n 1 one)
    [[ $verb == bench ]] && example="$example --list" # names the cases it would run
    [[ -n $(bash -c "$example") ]] && echo "$verb: help and example"
done
