/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the fields of a protobuf message in memory, never past its end: SentencePiece's models. */
#ifndef EMBLA_FILES_PROTOBUF_H
#define EMBLA_FILES_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a message. */
typedef struct {
    const uint8_t *at;
    size_t left;
} embla_proto;

typedef struct {
    uint64_t field;
    unsigned wire;   /* 0 a varint, 1 eight bytes, 2 bytes with a length, 5 four bytes */
    uint64_t length; /* bytes of the value that follows; 0 for a varint, which was read */
    uint64_t number; /* the value of a varint */
} embla_proto_tag;

/* Reads a varint: up to ten bytes with seven bits each. */
static inline bool embla_proto_varint(embla_proto *s, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; s->left > 0; shift += 7) {
        uint8_t byte = *s->at++;
        s->left--;
        if (shift == 63 && byte > 1) return false; /* more than 64 bits */
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* Reads the tag of the next field and the length of its value, or the value of a varint. The length
 * may be more than what is left: the caller compares. */
static inline bool embla_proto_next(embla_proto *s, embla_proto_tag *out)
{
    uint64_t key = 0;
    if (!embla_proto_varint(s, &key)) return false;
    *out = (embla_proto_tag){key >> 3, (unsigned)(key & 7), 0, 0};
    if (out->field == 0) return false;
    switch (out->wire) {
    case 0:
        return embla_proto_varint(s, &out->number);
    case 1:
        out->length = 8;
        return true;
    case 2:
        return embla_proto_varint(s, &out->length);
    case 5:
        out->length = 4;
        return true;
    default:
        return false; /* groups, which are deprecated */
    }
}

#endif
