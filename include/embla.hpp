/* SPDX-License-Identifier: Apache-2.0 */
/* embla.hpp - the stable headers of Embla in C++17: embla.h, embla_checkpoint.h, embla_store.h and
 * embla_text.h. All of it is inline: link the libraries as for C, and embla_text only for text.
 *
 *   const auto checkpoint = embla::checkpoint::open("model.safetensors");
 *   const auto table = embla::table::open(checkpoint);
 *   const std::vector<std::int32_t> tokens = {17, 42};
 *   const std::vector<float> rows = embla::lookup(table, tokens);
 *
 * The comments of the C headers hold here too. These are the differences:
 *   names    embla_table_rows(table) is table.rows(), and embla_lookup(table, ..) is
 *            embla::lookup(table, ..). A function `new` is a constructor; open, view and others
 *            that create a handle are static. Enums, their values and structs keep their names of
 *            C. embla::lookup_options is embla_lookup_options, zeroed.
 *   order    Options come last and may be left out. With C++20 they can be written in the call:
 *            embla::lookup(table, tokens, out, {.threads = 2}). (gcc -Wextra warns of the fields
 *            that are not named. They are 0.)
 *   errors   A status that is not EMBLA_OK is thrown as embla::error, with the sentence of
 *            embla_error(). What is often not there is a std::optional: the token of a word, a key.
 *   arrays   An array is an embla::span, made of std::vector, std::array, an array, std::span, or
 *            pointer and size. A void * is an embla::memory, the bytes of such an array. A result
 *            that is too small is EMBLA_ERR_SHAPE, before C is called. A larger one is allowed:
 *            what is beyond the result is not touched. Pointers inside structs are not checked.
 *   handles  A handle owns: it can be moved, not copied, and frees what it holds. An empty or
 *            moved-from handle is NULL to C, which refuses it. get() is the handle of C. adopt()
 *            takes one over, release() gives it away, borrow() uses one that another owns. What
 *            must outlive what is as in C: declare a store before its tickets.
 *
 * From 0.1.0 on, nothing that compiles with it stops compiling within a minor version. It has no
 * binary interface of its own. A part of it can be included alone.
 */
#ifndef EMBLA_HPP
#define EMBLA_HPP

#include "embla/base.hpp"
#include "embla/checkpoint.hpp"
#include "embla/store.hpp"
#include "embla/table.hpp"
#if __has_include("embla_text.h") /* not if Embla was built without it */
#include "embla/text.hpp"
#endif

#endif
