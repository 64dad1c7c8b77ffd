s#SBATCH -N 4 --time=1-02:00:00
export EXP=a.yaml A='x y'
B+=(c "d")
bash examples/run_pretrain.sh ${B[@]} ${C:-"e"} `f` $1
