/* all_reduce BYTES: sums BYTES of doubles over all ranks (MPI_Allreduce) again and again, until it is ended.
 *
 * For each iteration rank 0 prints its seconds on the slowest rank, when it ended (seconds since 1970), and how many of its sums
 * were wrong on the rank where most were. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double term(int rank, long round, long k)
{
	return (double)(rank + round + k % 1000);
}

int main(int argc, char **argv)
{
	int rank, ranks;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	long count = argc == 2 ? atol(argv[1]) / (long)sizeof(double) : 0;
	double *own = calloc((size_t)count + 1, sizeof *own), *sum = calloc((size_t)count + 1, sizeof *sum);
	if (count < 1 || !own || !sum) {
		fprintf(stderr, "usage: all_reduce BYTES, at least 8 and not more than fit into memory\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
		return 2;
	}
	for (long round = 1;; round++) {
		for (long k = 0; k < count; k++)
			own[k] = term(rank, round, k);
		MPI_Barrier(MPI_COMM_WORLD);
		double begin = MPI_Wtime();
		MPI_Allreduce(own, sum, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		double found[2] = {MPI_Wtime() - begin, 0}, worst[2];
		for (long k = 0; k < count; k++) /* all are whole numbers, so their sum is exact */
			found[1] += sum[k] != ranks * term(0, round, k) + ranks * (ranks - 1) / 2;
		MPI_Reduce(found, worst, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
		if (rank == 0) {
			struct timespec now;
			clock_gettime(CLOCK_REALTIME, &now);
			printf("iteration %ld: %.3f s, ended %.3f, %.0f sums wrong\n", round, worst[0],
			       (double)now.tv_sec + 1e-9 * (double)now.tv_nsec, worst[1]);
			fflush(stdout);
		}
	}
}
