/* SPDX-License-Identifier: MIT
 * Lists and ranges of settings, and the command lines they stand for. */
#include "cli/axes.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values --------------------------------------------------------------------------------- */

struct reader {
    const struct cli_setting *setting;
    struct axis *axis;
    struct ty_error *error; /* set before the text is at its end: not because of its form */
};

static ty_status refuse(const struct cli_setting *setting, struct ty_error *error)
{
    return cli_refuse(error, setting->origin,
                      "is not a list (200,400 Gb/s), a range of doublings (100..800 Gb/s), "
                      "of factors (100..800*1.5 Gb/s) or of steps (100..400+100 Gb/s)");
}

static bool grow(struct axis *axis)
{
    const uint32_t capacity = axis->capacity ? 2 * axis->capacity : 16;
    char **text = realloc(axis->text, capacity * sizeof *text);
    axis->text = text ? text : axis->text;
    double *number = text ? realloc(axis->number, capacity * sizeof *number) : NULL;
    axis->number = number ? number : axis->number;
    double *alone = number ? realloc(axis->alone, capacity * sizeof *alone) : NULL;
    axis->alone = alone ? alone : axis->alone;
    axis->capacity = alone ? capacity : axis->capacity;
    return alone != NULL;
}

static bool add(const struct reader *to, const char *text, double number)
{
    struct axis *axis = to->axis;
    if (strlen(text) >= AXIS_TEXT)
        return false;
    if (axis->n == AXIS_MAX_VALUES) {
        cli_refuse(to->error, to->setting->origin, "has more than %d values", AXIS_MAX_VALUES);
        return false;
    }
    char *copy = axis->n < axis->capacity || grow(axis) ? strdup(text) : NULL;
    if (!copy) {
        cli_refuse(to->error, to->setting->origin, "out of memory");
        return false;
    }
    axis->text[axis->n] = copy;
    axis->alone[axis->n] = (double)NAN;
    axis->number[axis->n++] = number;
    return true;
}

static bool add_number(const struct reader *to, double number, const char *unit)
{
    char text[AXIS_TEXT];
    snprintf(text, sizeof text, "%.12g%s%s", number, *unit ? " " : "", unit);
    return add(to, text, number);
}

/* low..high, low..high*factor, low..high+step, each with a unit behind */
static bool read_range(const char *text, const struct reader *to)
{
    char *at, first[AXIS_TEXT];
    const char *dots = strstr(text, "..");
    if (dots == text || dots - text >= AXIS_TEXT)
        return false;
    snprintf(first, sizeof first, "%.*s", (int)(dots - text), text); /* "50." is a number too */
    const double low = strtod(first, &at);
    if (*at != '\0')
        return false;
    const char *second = dots + 2;
    const double high = strtod(second, &at);
    if (at == second || !(low > 0.0) || !(high >= low) || !isfinite(high))
        return false;
    double factor = 2.0, step = 0.0;
    if (*at == '*' || *at == '+') {
        const char kind = *at++;
        char *end;
        const double by = strtod(at, &end);
        if (end == at || !(kind == '*' ? by > 1.0 : by > 0.0))
            return false;
        factor = kind == '*' ? by : 1.0;
        step = kind == '+' ? by : 0.0;
        at = end;
    }
    const char *unit = at + strspn(at, " ");
    double value = low;
    for (; value < high * (1.0 - 1e-9); value = value * factor + step)
        if (!add_number(to, value, unit))
            return false;
    return add_number(to, high, unit); /* the end belongs to every range */
}

/* a,b,c unit: the unit behind the last is that of all numbers that have none */
static bool read_list(const char *text, const struct reader *to)
{
    const char *last = strrchr(text, ',') + 1;
    char *end;
    strtod(last, &end);
    const char *unit = end == last ? "" : end + strspn(end, " ");
    for (const char *at = text;; at++) {
        char item[AXIS_TEXT];
        const size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof item)
            return false;
        snprintf(item, sizeof item, "%.*s", (int)length, at);
        const double number = strtod(item, &end);
        const bool plain = end != item && *end == '\0';
        if (!(plain ? add_number(to, number, unit)
                    : add(to, item, end == item ? (double)NAN : number)))
            return false;
        at += length;
        if (*at == '\0')
            return true;
    }
}

/* Lists of names are one value where the field itself is a list. */
static bool is_axis(const struct cli_setting *setting)
{
    const bool from_set = strchr(setting->origin, '=') != NULL;
    const bool own_list =
        setting->kind == TY_KIND_PLAN &&
        (strcmp(setting->path, "overlap") == 0 || strcmp(setting->path, "recompute") == 0);
    if (!from_set || own_list)
        return false;
    return strchr(setting->text, ',') || strstr(setting->text, "..");
}

/* A setting that comes after an axis and sets its field again, alone or with others. */
static ty_status check_order(const struct cli_args *args, const struct axis *axis,
                             struct ty_error *error)
{
    const struct cli_setting *own = &args->settings[axis->setting];
    for (uint32_t i = axis->setting + 1; i < args->n_settings; i++) {
        const struct cli_setting *later = &args->settings[i];
        const size_t n = strlen(later->path);
        if (later->kind == own->kind && strncmp(own->path, later->path, n) == 0 &&
            (own->path[n] == '\0' || own->path[n] == '.'))
            return cli_refuse(error, own->origin, "has no effect: %s comes after it",
                              later->origin);
    }
    return TY_OK;
}

static ty_status read_axis(const struct cli_args *args, uint32_t setting, struct axis *axis,
                           struct ty_error *error)
{
    const struct reader to = {&args->settings[setting], axis, error};
    const char *text = to.setting->text;
    *axis = (struct axis){.setting = setting};
    error->code = TY_OK;
    if (!(strstr(text, "..") ? read_range : read_list)(text, &to))
        return error->code != TY_OK ? error->code : refuse(to.setting, error);
    return check_order(args, axis, error);
}

ty_status axes_find(const struct cli_args *args, struct axes *out, struct ty_error *error)
{
    double n_points = 1.0;
    out->n = 0;
    for (uint32_t i = 0; i < args->n_settings; i++) {
        if (!is_axis(&args->settings[i]))
            continue;
        if (out->n == AXES_MAX)
            return cli_refuse(error, "whatif", "crosses at most %d settings", AXES_MAX);
        struct axis *axis = &out->axis[out->n++];
        const ty_status status = read_axis(args, i, axis, error);
        if (status != TY_OK)
            return status;
        n_points *= axis->n;
    }
    return n_points > AXES_MAX_POINTS
               ? cli_refuse(error, "whatif", "crosses %.4g points, at most %d can be", n_points,
                            AXES_MAX_POINTS)
               : TY_OK;
}

void axes_free(struct axes *axes)
{
    for (uint32_t i = 0; i < axes->n; i++) {
        struct axis *axis = &axes->axis[i];
        for (uint32_t k = 0; k < axis->n; k++)
            free(axis->text[k]);
        free(axis->text);
        free(axis->number);
        free(axis->alone);
    }
    axes->n = 0;
}

/* ---- points --------------------------------------------------------------------------------- */

uint64_t axes_n_points(const struct axes *axes)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < axes->n; i++)
        n *= axes->axis[i].n;
    return n;
}

void axes_places(const struct axes *axes, uint64_t point, uint32_t place[AXES_MAX])
{
    for (uint32_t i = axes->n; i-- > 0;) {
        place[i] = (uint32_t)(point % axes->axis[i].n);
        point /= axes->axis[i].n;
    }
}

void axes_line(const struct axes *axes, const struct cli_args *args, const uint32_t place[AXES_MAX],
               struct cli_args *out)
{
    *out = *args;
    out->n_settings = 0;
    for (uint32_t i = 0, axis = 0; i < args->n_settings; i++) {
        const bool is_axis = axis < axes->n && axes->axis[axis].setting == i;
        const uint32_t at = is_axis ? place[axis++] : 0;
        if (at == AXIS_OUT)
            continue;
        struct cli_setting *setting = &out->settings[out->n_settings++];
        *setting = args->settings[i];
        if (is_axis)
            setting->text = axes->axis[axis - 1].text[at];
    }
}
