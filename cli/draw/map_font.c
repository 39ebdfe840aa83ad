/* SPDX-License-Identifier: Apache-2.0 */
/* The letters, drawn for this program on a grid of 5 x 10. A letter is a string of points, each
 * with two digits for x and y. A space lifts the pen.
 */
#include "draw/map_font.h"

#include <stdbool.h>

static const char *const letters[95] = {
    /* space to / */
    "", "0804 02", "0806 1816", "1218 3238 0444 0646", "46371706153544331304 2921",
    "0248 0818170708 3343423233", "4216172837360403122244", "0806", "19070311", "09171301",
    "1814 0725 0527", "0444 2226", "1201", "0424", "02", "0139",
    /* 0 to 9 */
    "180703122233372818", "071812", "07182837360232", "07182837362515 253433221203", "22280434",
    "380805253433221203", "372818070312223334251504", "083812", "15060718283736251504031222333425",
    "362515060718283733221203",
    /* : to @ */
    "02 05", "1201 15", "360432", "0343 0545", "063402", "071828373614 12",
    "42120307183847443436262434",
    /* A to Z */
    "022842 1434", "02083847463505 3544433202", "4738180703123243", "02082846442202",
    "48080242 0535", "480802 0535", "47381807031232434525", "0802 4842 0545", "0802", "3833221203",
    "0802 4804 1542", "080242", "0208254842", "02084248", "180703123243473818", "02083847463505",
    "180703123243473818 2442", "02083847463505 2542", "473818070615354443321203", "0848 2822",
    "080312324348", "082248", "0812263248", "0842 4802", "082548 2522", "08480242",
    /* [ to ` */
    "19090111", "0931", "09191101", "061826", "0141", "0817",
    /* a to z */
    "3632 3526160503122233", "0802 0516263533221203", "3526160503122233", "3832 3526160503122233",
    "043435261605031232", "38281712 0626", "3526160503122233 36312010", "0802 0516263532",
    "0602 08", "161100 18", "0802 3603 1432", "0802", "0602 05162522 25364542", "0602 0516263532",
    "160503122233352616", "0600 0516263533221203", "3630 3526160503122233", "0602 051626",
    "3616051424332202", "18132232 0626", "0603122233 3632", "062246", "0612253246", "0632 3602",
    "0622 4610", "06360232",
    /* { to ~ */
    "29181605141221", "0901", "09181625141201", "04153445"};

static const char *letter_points(char c)
{
    return c >= ' ' && c <= '~' ? letters[c - ' '] : letters['?' - ' '];
}

/* The distance from the start of a letter to the start of the next one. */
static double advance(const char *points)
{
    int most = 0;
    if (!*points) return 3;
    for (; *points; points += points[0] == ' ' ? 1 : 2)
        if (*points != ' ' && *points - '0' > most) most = *points - '0';
    return most + 1.9;
}

double cli_font_width(const char *text)
{
    double width = 0;
    for (; *text; text++) width += advance(letter_points(*text));
    return width;
}

void cli_font_strokes(const char *text, void (*draw)(void *context, cli_stroke stroke),
                      void *context)
{
    double left = 0;
    for (; *text; text++) {
        const char *p = letter_points(*text);
        double x = 0, y = 0;
        for (int n = 0; *p; p++) {
            if (*p == ' ') {
                n = 0;
                continue;
            }
            double to_x = left + (p[0] - '0'), to_y = p[1] - '0';
            bool alone = n == 0 && (p[2] == '\0' || p[2] == ' '); /* a dot */
            if (n > 0 || alone)
                draw(context, (cli_stroke){alone ? to_x : x, alone ? to_y : y, to_x, to_y});
            x = to_x;
            y = to_y;
            n++;
            p++;
        }
        left += advance(letter_points(*text));
    }
}
