/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `embla play`: play_page.c collects its files and writes it, play_model.c chooses what
 * of the model goes in.
 *
 * The files of a page have paths of their own:
 *   /model..                  the model or the table
 *   /words.vec /names /village /five.vec /fox.vec  of the demo
 *   /text/NAME /names.txt /village.txt             texts
 * The rows of a table are one safetensors file with its words beside it. If they are i8 it has a
 * second tensor, `scales`: the factor of each row, or a NaN for a row that has one.
 */
#ifndef EMBLA_PLAY_PLAY_PAGE_H
#define EMBLA_PLAY_PLAY_PAGE_H

#include "base/arena.h"
#include "embla_lab.h"
#include "system/system.h"

enum {
    EMBLA_PLAY_FILES = 96,           /* maximum number of files in a page */
    EMBLA_PLAY_PATH = 512,           /* a buffer size for the path of one */
    EMBLA_PLAY_PAGE_MOST = 10000000, /* bytes of a page.. */
    EMBLA_PLAY_MODEL_MOST = 5000000, /* ..of the files of a decoder in it.. */
    EMBLA_PLAY_TEXT_MOST = 2000000   /* ..and of a text */
};

typedef struct {
    const char *path; /* in the page */
    const void *bytes;
    size_t size;
} embla_play_file;

typedef struct {
    embla_arena arena;
    const embla_play_options *options;
    embla_play_report report;
    embla_play_file files[EMBLA_PLAY_FILES];
    size_t count;
    uint64_t used;         /* bytes of the page so far */
    const char *model;     /* the path of the model in the page */
    const char *name;      /* what commands call it.. */
    const char *command;   /* ..and how it was trained; NULL means unknown */
    bool has_words;        /* it is a table with words */
    const char *text;      /* the path of the caller's text in the page; NULL means none.. */
    const char *text_name; /* ..and what commands call it */
} embla_play_page;

/* ---- play_page.c ---- */

/* Adds a file of bytes that stay valid. The path is copied. */
EMBLA_CHECKED embla_status embla_play_add(embla_play_page *page, const char *path,
                                          const void *bytes, size_t size);
/* Adds a file of a folder; EMBLA_HERE means the current one. Messages call it `shown`. */
EMBLA_CHECKED embla_status embla_play_read(embla_play_page *page, embla_folder folder,
                                           const char *name, const char *shown, const char *path);
/* Adds the demo's table of words, for a model that is none. */
EMBLA_CHECKED embla_status embla_play_words(embla_play_page *page);
/* The bytes that a file of so many bytes takes in a page, beside its path. */
uint64_t embla_play_size(uint64_t bytes);

/* ---- play_model.c ---- */

/* Adds the model last: a table takes what is left of the page. */
EMBLA_CHECKED embla_status embla_play_model(embla_play_page *page, const embla_checkpoint *model);

/* ---- the page that the build embeds ---- */

extern const unsigned char embla_play_template[];
extern const size_t embla_play_template_bytes;

#endif
