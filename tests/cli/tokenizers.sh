# SPDX-License-Identifier: Apache-2.0
# Small tokenizers for the cases.

# bert: bert.json, WordPiece with special tokens
bert() {
    cat >bert.json <<'JSON'
{"version": "1.0", "truncation": null, "padding": null,
 "added_tokens": [{"id": 1, "content": "[CLS]", "special": true, "normalized": false},
                  {"id": 2, "content": "[SEP]", "special": true, "normalized": false}],
 "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true},
 "pre_tokenizer": {"type": "BertPreTokenizer"},
 "post_processor": {"type": "TemplateProcessing",
   "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
              {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
   "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
            {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
   "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]},
                      "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}}},
 "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
   "max_input_chars_per_word": 100,
   "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "un": 3, "##aff": 4, "##able": 5, "##a": 6,
             "cafe": 7, "!": 8, "a": 9}}}
JSON
}

# bytes: bytes.json, BPE of single bytes
bytes() {
    python3 - <<'PYTHON'
import json
plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
other = [b for b in range(256) if b not in plain]
code = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(other)}
level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
with open("bytes.json", "w") as file:
    json.dump({"added_tokens": [], "normalizer": None, "pre_tokenizer": level, "post_processor": level,
               "decoder": level, "model": {"type": "BPE", "merges": [],
                                           "vocab": {code[b]: b for b in range(256)}}}, file)
PYTHON
}
