/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of docs/formats.md. Written by tests/house/rules.py PROJECT --update. */
#include "core/rules.h"

/* clang-format off */
const cli_rule cli_rules[] = {
    {"C1", "every reader",
     "A file must be a regular file (U for a folder, pipe or device) and not empty (F); the"
     " open descriptor is checked, with fstat.", false},
    {"C2", "every reader",
     "No read goes past the end of a file; a size is compared with the bytes left, never "
     "added to an offset.", false},
    {"C3", "every reader",
     "Products and sums of sizes are checked for overflow; the error has the rule that "
     "needs the size.", false},
    {"C4", "every reader",
     "A size that memory cannot address is refused before it is used.", false},
    {"C5", "every reader",
     "No allocation is larger than the bytes left in the file justify; one read has at most"
     " 64 MiB, a vocabulary at most 2^22 words (limits of Embla).", false},
    {"C6", "every reader",
     "Numbers are read byte by byte, little-endian, at any alignment.", false},
    {"C7", "every reader",
     "Input never leads to an assert or an exit.", false},
    {"C8", "every reader",
     "Duplicates are found by sorting (n log n), not by hashing.", false},
    {"C9", "every reader",
     "The handle is the proof that everything was checked.", false},
    {"C10", "every reader",
     "A table has 1 to 2^40 rows of 1 to 2^20 numbers (limits of Embla); a row number "
     "outside is EMBLA_ERR_RANGE.", false},
    {"C11", "every reader",
     "A file must not become shorter while it is open.", false},
    {"C12", "every reader",
     "NaN and infinity are accepted as numbers; doctor counts their rows.", false},
    {"C13", "every reader",
     "JSON and text vocabularies are UTF-8; all other strings are bytes, and the program "
     "escapes control characters.", false},
    {"C14", "every reader",
     "A message quotes at most 128 bytes of a file's text.", false},
    {"C15", "every reader",
     "An unknown format, version or kind is refused, with its number.", false},
    {"S1", "safetensors",
     "The file has at least 8 bytes, the length; the header has 2 to 100,000,000 bytes and "
     "is inside the file.", false},
    {"S2", "safetensors",
     "The header is UTF-8 and begins with {.", true},
    {"S3", "safetensors",
     "Only space, tab, CR and LF follow its closing brace.", false},
    {"S4", "safetensors",
     "The JSON has two levels: an object of objects, with arrays only inside those; numbers"
     " are integers from 0 to 2^63 - 1.", false},
    {"S5", "safetensors",
     "No key occurs twice, at either level, after decoding escapes.", false},
    {"S6", "safetensors",
     "A tensor has dtype, shape, data_offsets and nothing else.", false},
    {"S7", "safetensors",
     "The dtype is known; otherwise the whole file is refused, because its size cannot be "
     "checked.", false},
    {"S8", "safetensors",
     "0 to 8 dimensions (a limit of Embla); their product times the dtype's bits is a whole"
     " number of bytes, equal to that of the offsets.", false},
    {"S9", "safetensors",
     "Sorted by offset, the tensors cover the data exactly: no hole, no overlap, nothing "
     "after them.", false},
    {"S10", "safetensors",
     "__metadata__ maps text to text; at most 65,536 members and 10,000,000 bytes (limits "
     "of Embla).", false},
    {"S11", "safetensors",
     "At most 1,000,000 tensors (a limit of Embla); names have 1 to 4,096 bytes (a limit of"
     " Embla), none of them 0.", false},
    {"S12", "safetensors",
     "Data may begin at any offset; a note reports one that is not a multiple of 4.", false},
    {"S13", "safetensors",
     "An index has at most 64,000,000 bytes, 4 levels and 10,000 shards (limits of Embla). "
     "weight_map maps text to text; no key occurs twice. A shard is a plain name, "
     "[A-Za-z0-9._-]{1,255}, without a leading dot, .. or .json; it is a safetensors file "
     "and no link (except as in decision 008). Every tensor is in its shard and in no "
     "other. A different total_size, and tensors that are not in weight_map, are notes.", false},
    {"S14", "safetensors",
     "When written: spaces after the header, so that data begins at a multiple of 64 "
     "(packs: 4,096); tensors with the widest numbers first, then by name; a header above "
     "100,000,000 bytes is refused.", false},
    {"K1", "packs",
     "The manifest is JSON with at most 4 levels; its version is 1 or 2 (U for another).", false},
    {"K2", "packs",
     "Its integers are there and in range: 1 to 2^40 rows, 0 to 2^31 - 1 bundles of 1 to 32"
     " rows (limits of Embla).", false},
    {"K3", "packs",
     "The lists of the hasher have as many integers as its orders, or its columns.", false},
    {"K4", "packs",
     "Dtype, dim and scales describe rows that exist; the scale is finite and not 0.", false},
    {"K5", "packs",
     "Its tensors have the stated types and the sizes that follow from the manifest, and "
     "begin a page.", false},
    {"K6", "packs",
     "The keys of bundles ascend; the bundles in pack.order exist.", false},
    {"K7", "packs",
     "Rows and bundles have the recorded checksums; embla pack --verify reads all of them.", false},
    {"K8", "packs",
     "The manifest and the lists have the recorded checksums, which a pack of version 2 "
     "has; version 1 is a note.", false},
    {"G1", "GGUF",
     "The version is 2 or 3; a big-endian file has its own message.", false},
    {"G2", "GGUF",
     "The counts of tensors and keys fit the bytes left (at least 24 and 13 bytes each); at"
     " most 1,000,000 of each (a limit of Embla).", false},
    {"G3", "GGUF",
     "Keys are ASCII of 1 to 65,535 bytes without a 0, and none occurs twice; strings fit "
     "the bytes left, at most 64 MiB (a limit of Embla).", false},
    {"G4", "GGUF",
     "Types are 0 to 12; a bool is 0 or 1; no arrays of arrays; an array fits the bytes "
     "left, at most 2^28 elements (a limit of Embla); all arrays together have at most 2^24"
     " strings and bools (a limit of Embla).", false},
    {"G5", "GGUF",
     "A value is read only as its own type; there are as many scores (f32) and token types "
     "(i32) as tokens.", false},
    {"G6", "GGUF",
     "General.alignment is a u32, a power of two from 8 to 65,536 (a limit of Embla).", false},
    {"G7", "GGUF",
     "Names have 1 to 63 bytes without a 0, and none occurs twice; 1 to 4 dimensions, each "
     "at most 2^40 (a limit of Embla), with a product below 2^64. A tensor with a dimension"
     " of 0 is listed, but cannot be a table.", false},
    {"G8", "GGUF",
     "The type is one of those in src/core/formats/element.c.", false},
    {"G9", "GGUF",
     "A row is a whole number of blocks; its bytes fit in 63 bits.", false},
    {"G10", "GGUF",
     "Each tensor is aligned, begins where the one before ends, and is inside the file. The"
     " padding of the last one may be missing; bytes after it are a note.", false},
    {"G11", "GGUF",
     "No sum of sizes overflows.", false},
    {"G12", "GGUF",
     "A token of type byte is <0xHH>, with two hexadecimal digits; only the alignment and "
     "the split counts of the metadata are used as a size or an offset.", false},
    {"G13", "GGUF",
     "A model in several files has 1 to 1,000, called NAME-00001-of-00005.gguf, and is "
     "opened by the first. Each file has its own number; together they have the stated "
     "number of tensors; links as in S13.", false},
    {"N1", "npy",
     "The magic number; version 1.0, 2.0 or 3.0 (otherwise U); a header of at most 10,000 "
     "bytes, inside the file.", false},
    {"N2", "npy",
     "The header is a dictionary with descr, fortran_order and shape, once each. It is "
     "parsed by our own grammar: printable ASCII, no escapes, nothing is evaluated.", false},
    {"N3", "npy",
     "Descr is <, >, = or |, then f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8. O (a pickle), "
     "structures, text, complex, dates, bool and V are U, except <V2 and |V2 with as = "
     "bf16.", false},
    {"N4", "npy",
     "A note reports numbers that do not begin at a multiple of 16.", false},
    {"N5", "npy",
     "The product of at most 8 dimensions (more are U) is exactly the rest of the file. An "
     "array with fortran_order and two dimensions is transposed; with more dimensions, "
     "reading it is U.", true},
    {"N6", "npy",
     "Npz is refused.", false},
    {"W1", "word2vec and GloVe",
     "The first line is rows dim, with at most 10 and 6 digits and one space; 1 to 2^31-1 "
     "rows, 1 to 65,536 numbers. Binary: that many rows fit in the file. GloVe: the first "
     "line is a word and 2 to 65,536 numbers.", false},
    {"W2", "word2vec and GloVe",
     "Binary: a word of 1 to 1,024 bytes (a limit of Embla), a space, 4 bytes for each "
     "number; a newline follows every row or none, as after the first.", false},
    {"W3", "word2vec and GloVe",
     "Text: the last dim fields are the numbers, and the rest is the word, with its spaces."
     " Without a header, the first line gives dim; a second line that is a word and more "
     "numbers is refused. Only space and tab separate fields. A line has at most 1,024 + 40"
     " dim bytes (a limit of Embla).", false},
    {"W4", "word2vec and GloVe",
     "A number is decimal, with an optional sign, fraction and exponent, or nan, inf, "
     "infinity; no hexadecimal, no .5, no locale. It is rounded to the nearest float; too "
     "large becomes infinity. A wrong number is found when its row is read, not at opening.", false},
    {"W5", "word2vec and GloVe",
     "There are as many rows as the first line says; more are always refused, fewer unless "
     "lenient.", true},
    {"W6", "word2vec and GloVe",
     "A note reports words that occur twice; such a word finds its first row. Words are any"
     " bytes.", false},
    {"W7", "word2vec and GloVe",
     "No buffer for a word has a fixed size.", false},
    {"F1", "fastText",
     "Magic number (F); version 11 or 12 (U).", false},
    {"F2", "fastText",
     "Dim is 1 to 65,536 (a limit of Embla), minn and maxn 0 to 64 (a limit of Embla), minn"
     " at most maxn unless maxn is 0, bucket at least 0, loss 1 to 4, model 1 to 3, t "
     "finite.", false},
    {"F3", "fastText",
     "Size = words + labels, none negative, fits in the file; a word ends with a 0 within "
     "4,096 bytes (a limit of Embla) and inside the file; counts are not negative; words "
     "come before labels; the number of kept n-grams is -1 or fits, and each index is in "
     "range.", false},
    {"F4", "fastText",
     "Input has words + buckets rows, output has as many rows as words (labels, in a "
     "classifier); both have dim columns and are inside the file.", false},
    {"F5", "fastText",
     "A quantized table: codes = rows times pieces, pieces and widths agree, 256 centroids,"
     " one byte for each norm; n-grams are pruned only in a quantized model; flags are 0 or"
     " 1.", false},
    {"F6", "fastText",
     "The file ends where output ends.", false},
    {"L1", "llm.c",
     "Llm.c: magic number; version 3 or 5 (U); sizes at least 1, at most 1,024 layers and "
     "4,096 padding rows (limits of Embla); channels are a multiple of heads; the file's "
     "size is exact.", false},
    {"L2", "llm.c",
     "Llm.c's other files (tokens, states, evaluation sets) are recognised and refused (U)."
     " Its tokenizer, as a vocabulary: version 1 or 2, no empty word, exact end.", false},
    {"L3", "llm.c",
     "Sizes are signed in the file, and none is negative; the lengths of words (llama2.c, "
     "llm.c) fit in the file.", false},
    {"LL1", "llama2.c",
     "Llama2.c: each of the seven numbers is possible for a model; a negative vocab_size "
     "means that the head is separate.", false},
    {"LL2", "llama2.c",
     "Dim is a multiple of heads, with an even quotient; heads are a multiple of key-value "
     "heads.", false},
    {"LL3", "llama2.c",
     "Header and tensors fill the file exactly.", false},
    {"LL4", "llama2.c",
     "Later exports (ak42) are recognised and refused.", false},
    {"M1", "the mapping of tokens to rows (Model2Vec)",
     "Mapping has one dimension, type I32 or I64, and 1 to 2^31 tokens.", false},
    {"M2", "the mapping of tokens to rows (Model2Vec)",
     "Every entry is a row of the table.", false},
    {"M3", "the mapping of tokens to rows (Model2Vec)",
     "The tensor weights has one dimension and is F64, F32, F16 or BF16; only encoders read"
     " it (encode, search, fit, near with a text).", false},
    {"T1", "vocabularies",
     "JSON has at most 64,000,000 bytes, 64 levels, strings of 1 MiB (limits of Embla); it "
     "is UTF-8, one object or array, and no key occurs twice. Text is UTF-8 without a 0, "
     "with words of at most 1 MiB.", false},
    {"T2", "vocabularies",
     "An id is an integer from 0 to 2^31-1; a token has one word; there is at least one "
     "token. Gaps are allowed. For a token without a row see Words.", false},
    {"T3", "vocabularies",
     "Added_tokens has at most 65,536 entries (a limit of Embla), each with id and content;"
     " if the model has the same word, the model's id is used.", false},
    {"V1", "text vocabularies",
     "NAME.vocab.txt has no backslash sequences except those above.", false},
    {"P", "pickles and archives",
     "Pickles (PyTorch's .bin, .pt, .pth, .ckpt, and .pkl) and zip archives are refused, "
     "because a pickle is a program. No part of one is run or parsed. Convert it to "
     "safetensors in a sandbox.", false},
    {"D1", "written files",
     "A file is written by the steps above.", false},
    {"D5", "written files",
     "An existing file is never changed, only replaced.", false},
    {NULL, NULL, NULL, false}};
/* clang-format on */
