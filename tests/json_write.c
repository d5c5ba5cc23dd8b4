/* SPDX-License-Identifier: MIT
 * The JSON writer: expected text from RFC 8259 (sections 6, 7) and RFC 3629 (UTF-8). */
#include "models/spec/json_write.h"
#include "tests/tap.h"

#include <float.h>
#include <locale.h>

/* The text of one string value written alone. */
static void string_is(const char *text, const char *want, const char *what)
{
    struct json_writer json;
    json_begin(&json);
    json_text(&json, NULL, text);
    char *got = json_finish(&json);
    same_text(got ? got : "(null)", want, what);
    free(got);
}

static void nesting(void)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    json_text(&json, "name", "a");
    json_array(&json, "list");
    json_count(&json, NULL, 18446744073709551615u);
    json_bool(&json, NULL, true);
    json_null(&json, NULL);
    json_close(&json);
    json_array(&json, "none");
    json_close(&json);
    json_object(&json, "inner");
    json_number(&json, "x", 0.5);
    json_close(&json);
    json_close(&json);
    char *got = json_finish(&json);
    same_text(got ? got : "(null)",
              "{\n  \"name\": \"a\",\n  \"list\": [\n    18446744073709551615,\n    true,\n"
              "    null\n  ],\n  \"none\": [],\n  \"inner\": {\n    \"x\": 0.5\n  }\n}\n",
              "nested objects and arrays, two spaces a level");
    free(got);
}

static void strings(void)
{
    string_is("a\"b\\c/\b\f\n\r\t\x01\x7F", "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u007f\"\n",
              "quotes, backslash and control characters are escaped");
    string_is("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x9A\x82", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x9A\x82\"\n",
              "UTF-8 of 2, 3 and 4 bytes is kept");
    string_is("\xFFx", "\"\xEF\xBF\xBDx\"\n", "a stray byte becomes U+FFFD");
    string_is("\xC0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\"\n", "an overlong form is refused");
    string_is("\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n",
              "a surrogate is refused");
    string_is("\xF4\x90\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n",
              "a value over U+10FFFF is refused");
    string_is("\xE2\x82", "\"\xEF\xBF\xBD\xEF\xBF\xBD\"\n", "a cut sequence is refused");
    string_is(NULL, "null\n", "no text is null");
}

static void numbers(void)
{
    char out[JSON_NUMBER_BYTES];
    same_text(json_number_text(0.1, out), "0.1", "15 digits where they suffice");
    same_text(json_number_text(1.0 / 3.0, out), "0.3333333333333333", "16 digits where needed");
    same_text(json_number_text(0.1 + 0.2, out), "0.30000000000000004", "17 digits where needed");
    same_text(json_number_text(-0.0, out), "-0", "negative zero");
    same_text(json_number_text(NAN, out), "null", "NaN is null");
    same_text(json_number_text(-INFINITY, out), "null", "infinity is null");
    const double hard[] = {DBL_MAX, -DBL_MIN, DBL_TRUE_MIN, 9007199254740993.0, 2.4e19};
    bool same = true;
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++)
        same = same && strtod(json_number_text(hard[i], out), NULL) == hard[i];
    ok(same, "extreme numbers read back to the same bits");
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8")) {
        same_text(json_number_text(0.5, out), "0.5", "a locale with a comma changes nothing");
        setlocale(LC_NUMERIC, "C");
    } else {
        skip("a locale with a comma changes nothing", "de_DE.UTF-8 is not installed");
    }
}

static void misuse(void)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    ok(json_finish(&json) == NULL, "an open level gives no text");
    json_begin(&json);
    json_object(&json, NULL);
    json_number(&json, NULL, 1);
    json_close(&json);
    ok(json_finish(&json) == NULL, "a member without a key gives no text");
    json_begin(&json);
    json_null(&json, NULL);
    json_null(&json, NULL);
    ok(json_finish(&json) == NULL, "two top values give no text");
    json_begin(&json);
    for (int level = 0; level <= JSON_MAX_DEPTH; level++)
        json_array(&json, NULL);
    for (int level = 0; level <= JSON_MAX_DEPTH; level++)
        json_close(&json);
    ok(json_finish(&json) == NULL, "too deep nesting gives no text");
}

int main(void)
{
    nesting();
    strings();
    numbers();
    misuse();
    return tap_done();
}
