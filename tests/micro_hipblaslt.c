/* SPDX-License-Identifier: MIT
 * hipblaslt-bench in the forms of its versions: columns as its documentation lists them, times from
 * 2 m n k / rate by hand: 2 x 4096 x 2048 x 1024 flop in 100 us are 171798.7 Gflop/s. */
#include "tests/micro_fixture.h"

#define BANNER                                                                                     \
    "hipBLASLt version: 1000\nQuery device success: there are 1 devices\n"                         \
    "Device ID 0 : AMD Instinct MI300X gfx942:sramecc+:xnack-\nwith 206.1 GB memory\n\n"
#define NEW_HEADER                                                                                 \
    "[0]:transA,transB,grouped_gemm,batch_count,m,n,k,alpha,lda,stride_a,beta,ldb,stride_b,ldc,"   \
    "stride_c,ldd,stride_d,a_type,b_type,c_type,d_type,compute_type,scaleA,scaleB,scaleC,scaleD,"  \
    "amaxD,activation_type,bias_vector,bias_type,hipblaslt-Gflops,hipblaslt-GB/s,us\n"
#define NEW_REST "1,4096,1,0,1024,1,4096,1,4096,1,"

static const char new_form[] = BANNER NEW_HEADER
    "    T,N,0,1,4096,2048,1024," NEW_REST
    "bf16_r,bf16_r,bf16_r,bf16_r,f32_r,0,0,0,0,0,none,0,bf16_r,171799,200,100\n"
    "    --Solution index: 300662\n" NEW_HEADER "    N,N,0,2,4096,2048,1024," NEW_REST
    "f8_r,f8_r,f16_r,f16_r,f32_r,0,0,0,0,0,none,0,f16_r,171799,200,200\n" NEW_HEADER
    "    N,N,0,1,4096,2048,1024," NEW_REST
    "f32_r,f32_r,f32_r,f32_r,xf32_r,0,0,0,0,0,none,0,f32_r,171799,200,300\n" NEW_HEADER
    "    N,N,1,1,4096,2048,1024," NEW_REST
    "f16_r,f16_r,f16_r,f16_r,f32_r,0,0,0,0,0,none,0,f16_r,171799,200,100\n";

static const char old_form[] =
    "transA,transB,M,N,K,alpha,lda,stride_a,beta,ldb,stride_b,ldc,stride_c,ldd,stride_d,d_type,"
    "compute_type,activation_type,bias_vector,hipblaslt-Gflops,us\r\n"
    "N,N,4096,2048,1024,1,4096,1,0,1024,1,4096,1,4096,1,f16_r,f32_r,none,0, 171799, 100.\r\n";

static void new_versions(void)
{
    struct record_list list;
    ok(records_of_text(new_form, "mi300x.log", &list), "a new version is read");
    if (!ok(list.n == 4, "a record for each line of values"))
        return;
    const struct record *r = &list.record[0];
    near(record_value(r, "m"), 2048.0, 1e-12, "its n are the rows");
    near(record_value(r, "n"), 4096.0, 1e-12, "its m the columns");
    near(record_value(r, "k"), 1024.0, 1e-12, "k");
    near(record_value(r, "time_s"), 100e-6, 1e-12, "time in seconds");
    near(record_value(r, "rate_flops_per_s"), 171.799e12, 1e-12, "rate in flop/s");
    same_text(record_value_text(r, "dtype"), "bf16", "dtype");
    same_text(record_value_text(r, "gpu"), "AMD Instinct MI300X", "GPU");
    ok(!r->rejected, "and it is right");
    near(record_value(&list.record[1], "batch"), 2.0, 1e-12, "batches count");
    ok(!list.record[1].rejected, "in the rate too");
    same_text(record_value_text(&list.record[1], "dtype"), "fp8", "8 bits");
    same_text(record_value_text(&list.record[2], "dtype"), "tf32", "xf32 is TF32");
    ok(list.record[2].rejected && strstr(list.record[2].rejected, "2 m n k"),
       "three times the time at the same rate is rejected");
    ok(list.record[3].rejected && strstr(list.record[3].rejected, "grouped"), "grouped ones too");
    record_list_free(&list);
}

static void old_version(void)
{
    struct record_list list;
    ok(records_of_text(old_form, "old.log", &list), "an old version, with CRLF, is read");
    if (!ok(list.n == 1 && !list.record[0].rejected, "its one record is right"))
        return;
    near(record_value(&list.record[0], "m"), 2048.0, 1e-12, "M, N, K in capitals");
    same_text(record_value_text(&list.record[0], "dtype"), "fp16", "dtype of the result");
    record_list_free(&list);
}

/* Cut anywhere it is read as far as it goes, or refused. */
static void cut_short(void)
{
    char text[sizeof new_form];
    bool sane = true;
    for (size_t n = 0; n < sizeof new_form; n++) {
        struct record_list list;
        memcpy(text, new_form, n);
        text[n] = '\0';
        if (records_of_text(text, "cut.log", &list))
            sane &= list.n <= 4;
        record_list_free(&list);
    }
    ok(sane, "cut at every byte");
}

int main(void)
{
    new_versions();
    old_version();
    cut_short();
    return tap_done();
}
