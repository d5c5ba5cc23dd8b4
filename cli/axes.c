/* SPDX-License-Identifier: MIT
 * Lists and ranges of settings, and the command lines they stand for. */
#include "cli/axes.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values --------------------------------------------------------------------------------- */

static ty_status refuse(const struct cli_setting *setting, struct ty_error *error)
{
    return cli_refuse(error, setting->origin,
                      "is not a list (200,400 Gb/s), a range of doublings (100..800 Gb/s), "
                      "of factors (100..800*1.5 Gb/s) or of steps (100..400+100 Gb/s) of at "
                      "most %d values",
                      AXIS_MAX_VALUES);
}

static bool add(struct axis *axis, const char *text, double number)
{
    if (axis->n == AXIS_MAX_VALUES || strlen(text) >= AXIS_TEXT)
        return false;
    snprintf(axis->text[axis->n], AXIS_TEXT, "%s", text);
    axis->number[axis->n++] = number;
    return true;
}

static bool add_number(struct axis *axis, double number, const char *unit)
{
    char text[AXIS_TEXT];
    snprintf(text, sizeof text, "%.12g%s%s", number, *unit ? " " : "", unit);
    return add(axis, text, number);
}

/* low..high, low..high*factor, low..high+step, each with a unit behind */
static bool read_range(const char *text, struct axis *axis)
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
        if (!add_number(axis, value, unit))
            return false;
    return add_number(axis, high, unit); /* the end belongs to every range */
}

/* a,b,c unit: the unit behind the last is that of all numbers that have none */
static bool read_list(const char *text, struct axis *axis)
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
        if (!(plain ? add_number(axis, number, unit)
                    : add(axis, item, end == item ? (double)NAN : number)))
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

ty_status axes_find(const struct cli_args *args, struct axes *out, struct ty_error *error)
{
    out->n = 0;
    for (uint32_t i = 0; i < args->n_settings; i++) {
        const struct cli_setting *setting = &args->settings[i];
        if (!is_axis(setting))
            continue;
        if (out->n == AXES_MAX)
            return cli_refuse(error, "whatif", "crosses at most %d settings", AXES_MAX);
        struct axis *axis = &out->axis[out->n++];
        axis->setting = i;
        axis->n = 0;
        if (!(strstr(setting->text, "..") ? read_range : read_list)(setting->text, axis))
            return refuse(setting, error);
    }
    return TY_OK;
}

/* ---- points --------------------------------------------------------------------------------- */

uint64_t axes_n_points(const struct axes *axes)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < axes->n; i++)
        n *= axes->axis[i].n;
    return n;
}

uint32_t axes_value(const struct axes *axes, uint64_t point, uint32_t axis)
{
    for (uint32_t i = axes->n - 1; i > axis; i--)
        point /= axes->axis[i].n;
    return (uint32_t)(point % axes->axis[axis].n);
}

void axes_point(const struct axes *axes, const struct cli_args *args, uint64_t point,
                struct cli_args *out)
{
    *out = *args;
    for (uint32_t i = 0; i < axes->n; i++)
        out->settings[axes->axis[i].setting].text = axes->axis[i].text[axes_value(axes, point, i)];
}

/* Copies the settings that are no axis, and of the axes the one that is kept. */
static void leave_out(const struct axes *axes, const struct cli_args *args, uint32_t kept,
                      uint32_t value, struct cli_args *out)
{
    *out = *args;
    out->n_settings = 0;
    for (uint32_t i = 0; i < args->n_settings; i++) {
        uint32_t axis = 0;
        while (axis < axes->n && axes->axis[axis].setting != i)
            axis++;
        if (axis < axes->n && axis != kept)
            continue;
        struct cli_setting *setting = &out->settings[out->n_settings++];
        *setting = args->settings[i];
        if (axis < axes->n)
            setting->text = axes->axis[axis].text[value];
    }
}

void axes_single(const struct axes *axes, const struct cli_args *args, uint32_t only,
                 uint32_t value, struct cli_args *out)
{
    leave_out(axes, args, only, value, out);
}

void axes_base(const struct axes *axes, const struct cli_args *args, struct cli_args *out)
{
    leave_out(axes, args, UINT32_MAX, 0, out);
}
