sprimus-cli slurm srun -N 2 -- container --image i -- direct --env A=1 -- train pretrain --config x.yaml k=v
