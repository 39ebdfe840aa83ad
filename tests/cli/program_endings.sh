# SPDX-License-Identifier: Apache-2.0
# The extension of --output chooses the format, and no file has the name of a picture but other contents.
. "$SOURCE/tests/cli/models.sh"
fox
cp -r "$SOURCE/demo/names" "$SOURCE/demo/words.vec" .
kind() { # FILE: what is in it
    case $(head -c 6 "$1" | od -An -tx1 | tr -d ' \n') in
    89504e47*) echo png ;;
    3c73766720*) echo svg ;;
    3c21444f43*) echo html ;;
    934e554d*) echo npy ;;
    7b2272* | 7b2264* | 7b2268* | 7b2270* | 7b2274*) echo json ;;
    7b226964*) echo jsonl ;;
    *) echo "text or numbers, $(wc -l <"$1") lines" ;;
    esac
}
for ending in svg SVG html htm txt TXT json jsonl tsv npy; do
    embla lookup fox.vec the fox -o lookup.$ending && echo "lookup .$ending: $(kind lookup.$ending)"
    embla embed names e m -o embed.$ending && echo "embed .$ending: $(kind embed.$ending)"
done
embla lookup fox.vec the -o rows.raw && wc -c <rows.raw
embla lookup fox.vec the -o rows.fvecs && wc -c <rows.fvecs
for ending in svg html txt json; do
    embla compare words.vec cat dog -o compare.$ending && echo "compare .$ending: $(kind compare.$ending)"
done
for ending in svg html txt json; do
    embla predict names em --top 2 -o predict.$ending && echo "predict .$ending: $(kind predict.$ending)"
done
for ending in txt json jsonl tsv npy sql; do
    embla encode words.vec 'a cat' -o encode.$ending && echo "encode .$ending: $(kind encode.$ending)"
done
# other endings are refused, and so are names without one
for name in x.pdf x.csv x .svg x.svg.bak folder.svg/x; do try lookup fox.vec the -o $name; done
mkdir folder.svg
try lookup fox.vec the -o folder.svg/x
try embed names e -o x.jpg
try embed --positions sinusoidal -o x.gif
try compare words.vec cat dog -o x.csv
try predict names em -o x.csv
try encode words.vec cat -o x.png
try encode words.vec cat -o x.svg
# with --format any name is possible, but that of another picture
embla lookup fox.vec the --format text -o noted && embla lookup fox.vec the --format npy -o rows.bin && embla lookup fox.vec the --plain -o x.csv
embla lookup fox.vec the --format svg -o drawn && kind drawn
embla compare words.vec cat dog --format svg -o compared && kind compared
try lookup fox.vec the --format text -o x.png
try lookup fox.vec the --plain -o x.svg
try lookup fox.vec the --json -o x.html
try lookup fox.vec the --format picture -o x.svg
try lookup fox.vec the --format svg -o x.png
try lookup fox.vec the --format html -o x.htm
try embed names e --format npy -o x.png
try embed names e --plain -o x.svg
try compare words.vec cat dog --format table -o x.svg
try compare words.vec cat dog --json -o x.png
try predict names em --format text -o x.svg
try encode words.vec cat --format text -o x.png
try map fox.vec --format svg -o x.png
try map fox.vec -o x.txt
# files of one format
try health fox.vec --plot x.png
try spectrum fox.vec --plot x.html
try trace --model qwen3.8-flash-next 7 -o x.png
try train words.vec -o model --plot x.png
try tokenizer names/tokenizer.json -o x.png --size 300
try fit words.vec names/config.json -o x.svg
# standard output and devices have no ending
embla lookup fox.vec the --dim 1 -o /dev/stdout
embla lookup fox.vec the --dim 1 --format json -o - | cut -c 1-9
ls
