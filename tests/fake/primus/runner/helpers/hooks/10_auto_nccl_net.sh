#!/bin/bash
# As Primus' own: names apart by blanks, which no library reads.
echo "env.NCCL_IB_HCA=mlx5_0 mlx5_1"
