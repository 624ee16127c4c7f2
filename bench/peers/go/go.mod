module gofer/bench

go 1.22
