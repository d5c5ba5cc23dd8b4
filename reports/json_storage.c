/* SPDX-License-Identifier: MIT
 * Input pipeline, checkpoints and the run as JSON. */
#include "reports/json.h"
#include <math.h>

static void write_need(struct json_writer *json, const struct ty_input_report *input)
{
    json_object(json, "need");
    json_number(json, "stall_target", input->stall_target);
    json_number(json, "workers_per_gpu", input->need_workers);
    json_number(json, "cores_per_gpu", input->cores);
    json_number(json, "read_bytes_per_s_per_node", input->need_node_bytes_per_s);
    json_number(json, "read_bytes_per_s", input->need_total_bytes_per_s);
    json_number(json, "requests_per_s_per_node", input->need_node_ops_per_s);
    json_number(json, "requests_per_s", input->need_total_ops_per_s);
    json_number(json, "limit_bytes_per_s_per_node", input->can_node_bytes_per_s);
    json_number(json, "limit_requests_per_s_per_node", input->can_node_ops_per_s);
    json_text(json, "limit_tier", input->can_tier);
    json_text(json, "limit", input->can_limit);
    json_number(json, "reads_in_flight_per_node", input->need_reads_in_flight);
    json_number(json, "copy_bytes_per_s_per_gpu", input->need_copy_bytes_per_s);
    json_number(json, "limit_copy_bytes_per_s", input->can_copy_bytes_per_s);
    json_number(json, "max_gpus_per_node", input->max_gpus_per_node);
    json_close(json);
}

static void write_input(struct json_writer *json, const struct ty_input_report *input)
{
    json_object(json, "input");
    json_number(json, "samples_per_gpu", input->samples);
    json_number(json, "samples_per_s", input->samples_per_s);
    json_number(json, "sample_bytes", input->sample_bytes);
    json_number(json, "decode_s", input->decode_s);
    json_count(json, "workers_per_gpu", input->workers);
    json_number(json, "prefetch", input->prefetch);
    json_object(json, "stage_s");
    for (enum ty_input_stage i = 0; i < TY_N_INPUT_STAGES; i++)
        json_number(json, ty_input_stage_name(i), input->stage_s[i]);
    json_close(json);
    json_number(json, "stall_s", input->stall_s);
    json_number(json, "stall_ratio", input->stall_ratio);
    json_number(json, "fetch_stall_ratio", input->fetch_stall_ratio);
    json_number(json, "prepare_stall_ratio", input->prepare_stall_ratio);
    json_text(json, "limit", ty_input_stage_name((enum ty_input_stage)input->limit));
    json_number(json, "storage_gain_pct", input->storage_gain_pct);
    json_number(json, "workers_gain_pct", input->workers_gain_pct);
    json_number(json, "cache_hit_ratio", input->hit_ratio);
    json_number(json, "first_batch_s", input->first_batch_s);
    json_number(json, "host_bytes_per_node", input->host_bytes_per_node);
    json_number(json, "read_bytes_per_s_per_node", input->read_bytes_per_s);
    json_text(json, "read_tier", input->read_tier);
    json_text(json, "read_limit", input->read_limit);
    write_need(json, input);
    json_close(json);
}

static void write_save(struct json_writer *json, const struct ty_save_report *save)
{
    json_object(json, "checkpoint");
    json_number(json, "bytes", save->bytes);
    json_number(json, "bytes_per_gpu", save->gpu_bytes);
    json_number(json, "bytes_per_param", save->bytes_per_param);
    json_text(json, "tier", save->tier);
    json_text(json, "limit", save->limit);
    json_number(json, "write_bytes_per_s_per_node", save->write_bytes_per_s);
    json_number(json, "copy_s", save->copy_s);
    json_number(json, "write_s", save->write_s);
    json_number(json, "blocking_s", save->blocking_s);
    json_number(json, "drain_s", save->drain_s);
    json_number(json, "every_s", save->every_s);
    json_number(json, "every_steps", save->n_steps);
    json_number(json, "best_every_s", save->best_s);
    json_number(json, "young_daly_s", save->young_daly_s);
    json_number(json, "host_bytes_per_node", save->host_bytes_per_node);
    json_number(json, "restore_s", save->restore_s);
    json_close(json);
}

void json_storage(struct json_writer *json, const struct ty_storage_report *storage)
{
    if (storage && storage->has_input)
        write_input(json, &storage->input);
    if (storage && storage->has_checkpoint)
        write_save(json, &storage->checkpoint);
    if (storage && isfinite(storage->money_per_month))
        json_number(json, "storage_money_per_month", storage->money_per_month);
}

void json_forecast(struct json_writer *json, const struct ty_forecast *forecast)
{
    if (!forecast)
        return;
    json_object(json, "run");
    json_number(json, "useful_ratio", forecast->goodput.useful_ratio);
    json_number(json, "tokens_per_s", forecast->tokens_per_s);
    json_number(json, "mtbf_s",
                isfinite(forecast->goodput.mtbf_s) ? forecast->goodput.mtbf_s : (double)NAN);
    json_number(json, "spares", forecast->goodput.spares);
    json_number(json, "stretch_ratio", forecast->goodput.stretch_ratio);
    json_array(json, "time_s");
    for (int i = 0; i < TY_N_QUANTILES; i++)
        json_number(json, NULL, forecast->time_s[i]);
    json_close(json);
    json_close(json);
}
