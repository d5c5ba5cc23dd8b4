# SPDX-License-Identifier: MIT
# A planner from Python, with ctypes alone: the best tp and pp of Llama-3-8B on 64 H100. Inputs are
# set by the names of their fields and answers come as JSON, so no struct is declared here.
# python3 planner.py [PATH OF libtrainyard-tools.so.0]
import ctypes as c
import json
import sys

lib = c.CDLL(sys.argv[1] if len(sys.argv) > 1 else 'libtrainyard-tools.so.0')
lib.ty_prediction_json.restype = c.c_void_p
PLAN = 3  # enum ty_kind


def check(status, error):
    if status != 0:
        sys.exit(error.raw.replace(b'\0', b' ').decode(errors='replace'))


def struct():
    return c.create_string_buffer(1 << 20)  # larger than any struct of the library


error, model, cluster, profile, plan, prediction = (struct() for _ in range(6))
check(lib.ty_model_load(b'llama3-8b', model, error), error)
check(lib.ty_cluster_load(b'dgx-h100', cluster, error), error)
check(lib.ty_profile_load(None, b'megatron-core', cluster, profile, error), error)
predictor = c.c_void_p()
check(lib.ty_predictor_create(model, cluster, profile, None, c.byref(predictor), error), error)

best = {}
for tp in (1, 2, 4, 8):
    for pp in (1, 2, 4):
        lib.ty_init(PLAN, plan)
        for name, value in dict(gpus=64, gbs=256, seq=4096, tp=tp, pp=pp).items():
            check(lib.ty_field_set(PLAN, plan, name.encode(), str(value).encode(), error), error)
        check(lib.ty_predictor_run(predictor, plan, None, prediction, error), error)
        text = lib.ty_prediction_json(prediction, profile, None, None)
        answer = json.loads(c.string_at(text))
        lib.ty_text_free(c.c_void_p(text))
        if answer['feasible'] and answer['tokens_per_s'] > best.get('tokens_per_s', 0):
            best = answer
lib.ty_predictor_destroy(predictor)
print('tp %d pp %d dp %d: %.0f tokens/s' % (best['resolved_plan']['tp'], best['resolved_plan']['pp'],
                                            best['resolved_plan']['dp'], best['tokens_per_s']))
