/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a checkpoint of any format. Prints its tensors and their roles, whether the head is tied
 * to the token table, and the rows of a few words. The rows stay in the file, except those of text
 * formats (as here), which are converted to numbers in memory.
 *
 *   open_checkpoint [FILE [WORD]...]     FILE may be a model's folder; default: words.vec of the
 * demo
 */
#include <embla_checkpoint.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8 }; /* numbers of a row that are printed */

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "open_checkpoint: %s\n", embla_error());
    exit(1);
}

static void print_tensors(const embla_checkpoint *checkpoint)
{
    size_t count;
    const embla_tensor *t = embla_checkpoint_tensors(checkpoint, &count);
    for (size_t n = 0; n < count; n++, t++) {
        printf("tensor %s:", t->name);
        for (size_t i = 0; i < t->rank; i++) printf("%s%" PRId64, i ? " x " : " ", t->shape[i]);
        printf(", %s", t->type);
        if (t->role != EMBLA_ROLE_NONE) printf(", role: %s", embla_role_name(t->role));
        if (t->offset >= 0) printf(", at byte %" PRId64, t->offset);
        printf("\n");
    }
}

/* Prints whether the head is tied, the case of docs/formats.md that applies, and the flag. */
static void print_tie(const embla_checkpoint *checkpoint)
{
    embla_tie tie;
    must(embla_checkpoint_tie(checkpoint, 0, &tie));
    printf("head: %s (case: %s; flag: %s)\n", embla_tie_name(tie.kind), tie.rule, tie.flag);
}

/* Prints a word, its token and the first numbers of its row, or that the word is not found. */
static void print_row(const embla_table *table, const embla_vocab *vocab, const char *word)
{
    size_t dim = embla_table_dim(table);
    int32_t token;
    float *row = malloc(dim * sizeof *row);
    if (!row) exit(1);
    if (embla_vocab_find(vocab, word, strlen(word), &token) == EMBLA_OK) {
        must(embla_lookup(table, &token, 1, NULL, row));
        printf("%-6s %3d", word, (int)token);
        for (size_t i = 0; i < dim && i < SHOWN; i++) printf(" %5.2f", (double)row[i]);
        printf("%s\n", dim > SHOWN ? " .." : "");
    } else {
        printf("%s\n", embla_error());
    }
    free(row);
}

int main(int argc, char **argv)
{
    static const char *const sentence[] = {"the", "queen", "saw", "a", "cat", "whale"};
    const char *path = argc > 1 ? argv[1] : "words.vec";
    size_t count;
    embla_checkpoint *checkpoint = NULL;
    embla_vocab *vocab = NULL;
    embla_table *table = NULL;

    must(embla_guard()); /* a file that is cut short becomes an error, not a signal */
    must(embla_checkpoint_open(path, NULL, &checkpoint));
    printf("%s: %s\n", path, embla_checkpoint_format(checkpoint));
    print_tensors(checkpoint);
    const char *const *notes = embla_checkpoint_notes(checkpoint, &count);
    for (size_t n = 0; n < count; n++) printf("note: %s\n", notes[n]);
    print_tie(checkpoint);

    must(embla_vocab_open(checkpoint, &vocab));
    printf("words: %" PRId64 ", from %s\n", embla_vocab_count(vocab), embla_vocab_source(vocab));
    must(embla_table_open(checkpoint, NULL, NULL, &table));
    embla_checkpoint_free(checkpoint); /* the table keeps its file open by itself */
    for (int i = 2; i < argc; i++) print_row(table, vocab, argv[i]);
    for (size_t i = 0; argc < 3 && i < sizeof sentence / sizeof sentence[0]; i++)
        print_row(table, vocab, sentence[i]);

    embla_table_free(table);
    embla_vocab_free(vocab);
    return 0;
}
