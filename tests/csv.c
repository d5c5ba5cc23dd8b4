/* SPDX-License-Identifier: MIT
 * RFC 4180: each example of the document, and what it forbids. */
#include "calibrate/csv.h"
#include "tests/tap.h"

#include <unistd.h>

static char path[] = "/tmp/trainyard-csv-XXXXXX";

static ty_status read_text(const char *text, struct csv *csv, struct ty_error *error)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return TY_ERR_IO;
    fputs(text, file);
    fclose(file);
    return csv_read(path, csv, error);
}

int main(void)
{
    const int descriptor = mkstemp(path);
    if (descriptor < 0)
        return 1;
    close(descriptor);
    struct csv csv;
    struct ty_error error;
    ok(read_text("a,b,c\r\n1,\"x, y\",\"say \"\"hi\"\"\"\r\n,\"two\nlines\",3\r\n", &csv, &error) ==
           TY_OK,
       "quotes, doubled quotes, an empty field, a line end inside quotes, CRLF");
    ok(csv.n_rows == 2 && csv.n_columns == 3, "two rows of three");
    same_text(csv_cell(&csv, 0, 1), "x, y", "a comma inside quotes");
    same_text(csv_cell(&csv, 0, 2), "say \"hi\"", "doubled quotes");
    same_text(csv_cell(&csv, 1, 0), "", "an empty field");
    same_text(csv_cell(&csv, 1, 1), "two\nlines", "a line end inside quotes");
    same_text(csv_cell(&csv, 1, csv_column(&csv, "c")), "3", "a column by name");
    ok(csv_column(&csv, "d") == -1, "no such column");
    csv_free(&csv);
    ok(read_text("a,b\n1,2", &csv, &error) == TY_OK && csv.n_rows == 1, "no final line end");
    csv_free(&csv);
    ok(read_text("a,b\n1,2\n3\n", &csv, &error) == TY_ERR_INPUT && strstr(error.text, "line 3"),
       "a short row is refused with its line");
    ok(read_text("a,b\n1,\"2\n", &csv, &error) == TY_ERR_INPUT && strstr(error.text, "quote"),
       "an open quote is refused");
    ok(read_text("", &csv, &error) == TY_ERR_INPUT, "an empty file is refused");
    ok(read_text("a,b\n", &csv, &error) == TY_ERR_INPUT, "a header alone is refused");
    unlink(path);
    ok(csv_read(path, &csv, &error) == TY_ERR_IO, "a missing file is an I/O error");
    return tap_done();
}
