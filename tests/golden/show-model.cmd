# Layer: q, o 64 each, k, v 32 each, MLP 3 x 8 x 16, two norms of 8: 592. Total 2 x 592 + 2 x 80 + 8.
# Matmul parameters 2 (192 + 384) + 80 = 1232. Attention at 4 tokens, causal 6 L h s = 384, full 768.
# megatron 6 x 1232 + 384; korthikanti + 768; -hw + 2 x 768; narayanan 8 x 1152 + 480 + 1024;
# torchtitan 6 (1352 - 80) + 768; foundry 6 x 1352 + 768; 6n 6 x 1352.
trainyard show model tests/golden/tiny.json
