# SPDX-License-Identifier: Apache-2.0
# Every verb has help, the same from `help VERB` and `VERB --help`, within 80 columns,
# and an example that runs in a copy of the demo.
. "$SOURCE/tests/cli/module.sh"
embla demo -o demo -q
cd demo || exit 1
for verb in $(embla help --json | tr '{' '\n' | sed -n 's/^"name":"\([^"]*\)","operands".*/\1/p'); do
    embla help "$verb" >one || echo "help $verb: exit $?"
    embla "$verb" --help >two || echo "$verb --help: exit $?"
    cmp one two
    awk 'length > 80' one
    example=$(tail -n 1 one)
    [[ $verb == bench ]] && example="$example --list" # names the cases it would run
    if [[ -n $(bash -c "$example") ]]; then echo "$verb: help and example"; fi
done
