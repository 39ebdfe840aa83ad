# SPDX-License-Identifier: Apache-2.0
# What `embla play` refuses, before it writes or trains.
. "$SOURCE/tests/cli/module.sh"
cp "$SOURCE"/demo/{fox.vec,names.txt} .
try play
try play fox.vec names.txt -o x.html
try play fox.vec -o x.png
try play nothing -o x.html
try play names.text -o x.html
printf '\000\001\002\003\004 no text\n' >bytes
try play bytes -o x.html | sed 's/; supported.*//'
printf 'a 1 2\nb 1\n' >broken.vec
try play broken.vec -o x.html
try play fox.vec -o fox.vec --force
try play fox.vec --steps 3 -o x.html
try play fox.vec --words 3 -o x.html
try play --words 3 -o x.html
try play --rows 3 -o x.html
try play names.txt --rows 3 -o x.html
try play "$SOURCE/demo/story" --rows 3 -o x.html | sed "s|$SOURCE/||"
try play fox.vec --rows 0 -o x.html
try play fox.vec -o no/x.html
yes 'a long line of a text' | head -n 100000 >long.txt
try play long.txt --steps 0 -o x.html

# the module: missing, of another version, not compressed
EMBLA_PLAY=$PWD try play -o x.html
fake_module old 0.0.9
EMBLA_PLAY=$PWD/old try play -o x.html | sed "s|$PWD/||"
rm old/play.wasm.gz.sha256
EMBLA_PLAY=$PWD/old try play -o x.html | sed "s|$PWD/||"
fake_module plain "$(embla --version | sed -n 's/^embla //p')"
echo text >plain/play.wasm.gz
EMBLA_PLAY=$PWD/plain try play -o x.html

# the demo: missing, or without a file
EMBLA_DEMO=$PWD try play -o x.html
mkdir part
cp "$SOURCE/demo/words.vec" part
EMBLA_DEMO=$PWD/part try play -o x.html | sed "s|$PWD/||g"
ls
