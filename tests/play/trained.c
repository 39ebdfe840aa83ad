/* SPDX-License-Identifier: Apache-2.0 */
/* Trains as the page does, and saves the model. The last arguments are those of play_choices.
 *   usage: trained TEXT FOLDER words dim steps positions tied seed rate [TOKENIZER]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "play.h"

int main(int argc, char **argv)
{
    if (argc != 10 && argc != 11) return 2;
    const char *tokenizer = argc == 11 ? argv[10] : NULL;
    const play_choices choices = {.words = atoi(argv[3]),
                                  .dim = atoi(argv[4]),
                                  .steps = atoi(argv[5]),
                                  .positions = atoi(argv[6]),
                                  .tied = atoi(argv[7]),
                                  .seed = atoi(argv[8]),
                                  .rate = strtod(argv[9], NULL)};
    play_training *training = play_train(argv[1], tokenizer, &choices);
    if (!training) {
        fprintf(stderr, "%s\n", play_error());
        return 1;
    }
    const char *steps = play_train_steps(training, choices.steps);
    int code = strstr(steps, "\"error\"") != NULL;
    printf("%s\n", steps);
    const char *saved = play_train_save(training, argv[2]);
    if (strstr(saved, "\"error\"")) code = 1;
    printf("%s\n", saved);
    play_train_close(training);
    return code;
}
