/* SPDX-License-Identifier: MIT
 * Quantities: what each text means (SI prefixes and handbook "How to read it": 1 GB = 1e9 B,
 * 1 GiB = 2^30 B, 8 bits a byte), what is refused and why, and that writing reads back exactly. */
#include "models/spec/units.h"

#include "include/trainyard_tools.h"
#include "tests/tap.h"

#include <locale.h>

static void test_meaning(void)
{
    static const struct {
        const char *text;
        enum ty_unit unit;
        double value;
    } rows[] = {
        {"400 Gb/s", TY_UNIT_BYTES_PER_S, 50e9},
        {"400Gb/s", TY_UNIT_BYTES_PER_S, 50e9},
        {"400 Gbps", TY_UNIT_BYTES_PER_S, 50e9},
        {"400 Gbit/s", TY_UNIT_BYTES_PER_S, 50e9},
        {"50 GB/s", TY_UNIT_BYTES_PER_S, 50e9},
        {"3.35 TB/s", TY_UNIT_BYTES_PER_S, 3.35e12},
        {"1 B/s", TY_UNIT_BYTES_PER_S, 1.0},
        {"2 MiB/s", TY_UNIT_BYTES_PER_S, 2097152.0},
        {"80 GB", TY_UNIT_BYTES, 80e9},
        {"80 GiB", TY_UNIT_BYTES, 85899345920.0},
        {"1 KiB", TY_UNIT_BYTES, 1024.0},
        {"1 kB", TY_UNIT_BYTES, 1e3},
        {"1 KB", TY_UNIT_BYTES, 1e3},
        {"0 B", TY_UNIT_BYTES, 0.0},
        {"14 us", TY_UNIT_S, 14e-6},
        {"14 \xc2\xb5s", TY_UNIT_S, 14e-6},
        {"1.5ms", TY_UNIT_S, 1.5e-3},
        {"3 ns", TY_UNIT_S, 3e-9},
        {" 2 s ", TY_UNIT_S, 2.0},
        {"989 Tflop/s", TY_UNIT_FLOP_PER_S, 989e12},
        {"989 TFLOPS", TY_UNIT_FLOP_PER_S, 989e12},
        {"1.3 PFLOP/s", TY_UNIT_FLOP_PER_S, 1.3e15},
        {"2 Mflops", TY_UNIT_FLOP_PER_S, 2e6},
        {"1830 MHz", TY_UNIT_HZ, 1.83e9},
        {"700 W", TY_UNIT_W, 700.0},
        {"1.2 kW", TY_UNIT_W, 1200.0},
        {"8", TY_UNIT_COUNT, 8.0},
        {"0.85", TY_UNIT_RATIO, 0.85},
        {"85 %", TY_UNIT_RATIO, 0.85},
        {"8192", TY_UNIT_TOKENS, 8192.0},
        {"4Mtok", TY_UNIT_TOKENS, 4e6},
        {"4 Mitok", TY_UNIT_TOKENS, 4194304.0},
        {"1e-3 s", TY_UNIT_S, 1e-3},
        {"1.5e1 GB", TY_UNIT_BYTES, 15e9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = -1.0;
        ty_status status = ty_quantity_parse(rows[i].text, rows[i].unit, &value, NULL);
        ok(status == TY_OK && value == rows[i].value, "\"%s\" is %.17g (%.17g)", rows[i].text,
           rows[i].value, value);
    }
}

static void test_refusals(void)
{
    static const struct {
        const char *text;
        enum ty_unit unit;
        const char *reason; /* a part of the refusal */
    } rows[] = {
        {"400", TY_UNIT_BYTES_PER_S, "has no unit; write e.g. 400 Gb/s"},
        {"0", TY_UNIT_BYTES, "has no unit"},
        {"", TY_UNIT_BYTES, "does not start with a number"},
        {"GB", TY_UNIT_BYTES, "does not start with a number"},
        {"NaN s", TY_UNIT_S, "does not start with a number"},
        {"inf W", TY_UNIT_W, "does not start with a number"},
        {"+5 W", TY_UNIT_W, "does not start with a number"},
        {".5 W", TY_UNIT_W, "does not start with a number"},
        {"0x10 W", TY_UNIT_W, "wrong unit"},
        {"400 Gb", TY_UNIT_BYTES_PER_S, "wrong unit"},
        {"80 Gb", TY_UNIT_BYTES, "wrong unit"},
        {"80 GB/s", TY_UNIT_BYTES, "wrong unit"},
        {"5 mB", TY_UNIT_BYTES, "wrong unit"},
        {"5 Gib/s", TY_UNIT_BYTES_PER_S, "wrong unit"},
        {"5 ks", TY_UNIT_S, "wrong unit"},
        {"8 k", TY_UNIT_COUNT, "wrong unit"},
        {"1,5 s", TY_UNIT_S, "wrong unit"},
        {"1e400 B", TY_UNIT_BYTES, "outside the range of a double"},
        {"1e308 PB", TY_UNIT_BYTES, "outside the range of a double"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = -1.0;
        struct ty_error error = {0};
        ty_status status = ty_quantity_parse(rows[i].text, rows[i].unit, &value, &error);
        ok(status == TY_ERR_INPUT && value == -1.0 && strstr(error.text, rows[i].reason),
           "\"%s\" is refused: %s", rows[i].text, error.text);
    }
}

static bool reads_back(double value, enum ty_unit unit)
{
    char text[QUANTITY_BYTES];
    double back = -1.0;
    quantity_write(value, unit, text);
    bool same = ty_quantity_parse(text, unit, &back, NULL) == TY_OK && back == value;
    if (!same)
        printf("#   %.17g as \"%s\" is %.17g\n", value, text, back);
    return same;
}

/* Values over the whole range of a double, from a fixed multiplicative sequence. */
static void test_round_trip(void)
{
    static const enum ty_unit units[] = {TY_UNIT_BYTES,      TY_UNIT_BYTES_PER_S, TY_UNIT_S,
                                         TY_UNIT_FLOP_PER_S, TY_UNIT_HZ,          TY_UNIT_W};
    uint64_t state = 1;
    int n_bad = 0;
    for (int i = 0; i < 60000; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double value = ldexp((double)(state >> 11), (int)(state >> 3 & 127) - 100);
        n_bad += !reads_back(value, units[i % 6]);
    }
    ok(n_bad == 0, "60000 written quantities read back to the same bits (%d do not)", n_bad);
    char text[QUANTITY_BYTES];
    same_text(quantity_write(50e9, TY_UNIT_BYTES_PER_S, text), "50 GB/s", "50e9 B/s");
    same_text(quantity_write(14e-6, TY_UNIT_S, text), "14 us", "14e-6 s");
    same_text(quantity_write(0.0, TY_UNIT_FLOP_PER_S, text), "0 flop/s", "0 flop/s");
    same_text(quantity_write(1610612736.0, TY_UNIT_BYTES, text), "1.5 GiB", "1.5 x 2^30 B");
    same_text(quantity_write(80e9, TY_UNIT_BYTES, text), "80 GB", "80e9 B");
    same_text(quantity_write(989.4e12, TY_UNIT_FLOP_PER_S, text), "989.4 Tflop/s", "989.4e12");
}

static void test_shown(void)
{
    char text[32];
    same_text(ty_quantity_text(50e9, TY_UNIT_BYTES_PER_S, text, sizeof text), "50 GB/s", "rate");
    same_text(ty_quantity_text(85899345920.0, TY_UNIT_BYTES, text, sizeof text), "80 GiB",
              "whole GiB");
    same_text(ty_quantity_text(80e9, TY_UNIT_BYTES, text, sizeof text), "80 GB", "whole GB");
    same_text(ty_quantity_text(8, TY_UNIT_COUNT, text, sizeof text), "8", "count");
    same_text(ty_quantity_text((double)NAN, TY_UNIT_S, text, sizeof text), "unknown", "NAN");
    ty_quantity_text(123456789e9, TY_UNIT_BYTES_PER_S, text, 4);
    ok(strlen(text) == 3, "a short buffer cuts and ends the text");
}

/* A program that embeds the library may run under a locale with a decimal comma. */
static void test_locale(void)
{
    static const char *const with_comma[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "ru_RU.UTF-8"};
    bool found = false;
    for (size_t i = 0; i < sizeof with_comma / sizeof *with_comma && !found; i++)
        found = setlocale(LC_NUMERIC, with_comma[i]) != NULL;
    if (!found) {
        skip("decimal comma", "no such locale is installed");
        return;
    }
    double value = 0.0;
    ty_status status = ty_quantity_parse("1.5 GB/s", TY_UNIT_BYTES_PER_S, &value, NULL);
    ok(status == TY_OK && value == 1.5e9, "1.5 is read under a decimal comma (%g)", value);
    ok(reads_back(3.35e12, TY_UNIT_BYTES_PER_S), "and written");
    setlocale(LC_NUMERIC, "C");
}

/* The examples of textbooks; the rest by hand. */
static void test_distance(void)
{
    ok(ty_text_distance("kitten", "sitting") == 3 && ty_text_distance("sunday", "saturday") == 3,
       "kitten to sitting, sunday to saturday: 3 edits");
    ok(ty_text_distance("gpus", "gpus") == 0 && ty_text_distance("", "gpus") == 4 &&
           ty_text_distance("gpus", "gups") == 2,
       "equal names, an empty one, two letters swapped");
}

int main(void)
{
    test_meaning();
    test_refusals();
    test_round_trip();
    test_shown();
    test_locale();
    test_distance();
    return tap_done();
}
