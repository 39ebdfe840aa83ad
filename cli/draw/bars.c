/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a list of bars. */
#include "draw/bars.h"

#include <math.h>

enum { STEP = 24, THICK = 14, GAP = 10 };

static double step_of(const cli_bar_list *list)
{
    return list->step > 0 ? list->step : STEP;
}

static double labels_wide(const cli_bar_list *list)
{
    double wide = 0;
    for (size_t i = 0; i < list->count; i++)
        wide = fmax(wide, cli_sheet_width(CLI_SHEET_LABEL, list->bars[i].label));
    return wide > 0 ? wide + GAP : 0;
}

double cli_bars_width(const cli_bar_list *list)
{
    double texts = 0;
    for (size_t i = 0; i < list->count; i++)
        texts = fmax(texts, cli_sheet_width(CLI_SHEET_LABEL, list->bars[i].text));
    return labels_wide(list) + list->width + GAP + texts;
}

double cli_bars_height(const cli_bar_list *list)
{
    return (double)list->count * step_of(list);
}

void cli_bars_draw(cli_sheet *sheet, const cli_bar_list *list, double x, double y)
{
    const double from = x + labels_wide(list), step = step_of(list);
    double full = list->full;
    for (size_t i = 0; i < list->count && list->full <= 0; i++)
        if (isfinite(list->bars[i].value)) full = fmax(full, list->bars[i].value);
    for (size_t i = 0; i < list->count; i++) {
        const cli_bar *bar = &list->bars[i];
        const double middle = y + ((double)i + 0.5) * step;
        double shown = isfinite(bar->value) && full > 0 ? list->width * bar->value / full : 0;
        shown = fmax(0, fmin(list->width, shown));
        if (bar->value > 0 && shown < 1) shown = 1; /* small, not nothing */
        const cli_sheet_spot spot = {from, middle - THICK / 2.0, shown, THICK};
        const cli_sheet_style label = {from - GAP, middle + 4, CLI_SHEET_END, CLI_SHEET_LABEL,
                                       CLI_SHEET_INK};
        const cli_sheet_style text = {from + shown + GAP, middle + 4, CLI_SHEET_START,
                                      CLI_SHEET_LABEL, CLI_SHEET_SOFT};
        if (bar->label[0]) cli_sheet_text(sheet, &label, bar->label);
        if (shown > 0) cli_sheet_box(sheet, &spot, bar->color);
        cli_sheet_text(sheet, &text, bar->text);
    }
}

static void draw_list(cli_sheet *sheet, const void *context)
{
    cli_bars_draw(sheet, context, CLI_SHEET_MARGIN, CLI_SHEET_TOP);
}

int cli_bars_print(cli_sheet_kind kind, const cli_sheet_page *page, const cli_bar_list *list)
{
    cli_sheet_page whole = *page;
    whole.width = cli_bars_width(list) + 2 * CLI_SHEET_MARGIN;
    whole.height = CLI_SHEET_TOP + cli_bars_height(list) + CLI_SHEET_MARGIN;
    return cli_sheet_print(kind, &whole, draw_list, list);
}
