# 8 GPUs cannot be 4 x 5 x dp; 2 heads are not split over 4 ranks; 2 layers, or 4 with embedding
# and head, do not fill 5 stages; 6 tokens are not split over 4 ranks. tp 4 and 5 stages need 20.
trainyard predict --model tests/golden/tiny.json --cluster dgx-h100 --gpus 8 --tp 4 --pp 5 --seq 6
