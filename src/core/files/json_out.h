/* SPDX-License-Identifier: Apache-2.0 */
/* JSON to a file that is being written, member by member; what fails first stays the status.
 * Whoever writes opens and closes objects.
 */
#ifndef EMBLA_FILES_JSON_OUT_H
#define EMBLA_FILES_JSON_OUT_H

#include "files/durable.h"

typedef struct {
    embla_durable *out;
    embla_status status;
} embla_json_out;

EMBLA_PRIVATE void embla_json_put(embla_json_out *t, const char *bytes, size_t length);
/* Up to 255 bytes. */
EMBLA_PRIVATE void embla_json_say(embla_json_out *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A string of JSON. bytes are UTF-8. */
EMBLA_PRIVATE void embla_json_say_string(embla_json_out *t, const char *bytes, size_t length);
/* "  "key": " of a member that is not the first; then members. */
EMBLA_PRIVATE void embla_json_say_key(embla_json_out *t, const char *key);
EMBLA_PRIVATE void embla_json_say_whole(embla_json_out *t, const char *key, int64_t value);
EMBLA_PRIVATE void embla_json_say_flag(embla_json_out *t, const char *key, bool value);
EMBLA_PRIVATE void embla_json_say_text(embla_json_out *t, const char *key, const char *value);
/* The fewest digits that give the number back. */
EMBLA_PRIVATE void embla_json_say_real(embla_json_out *t, const char *key, double value);
/* A token, or null where it is below 0. */
EMBLA_PRIVATE void embla_json_say_token(embla_json_out *t, const char *key, int64_t token);

#endif
