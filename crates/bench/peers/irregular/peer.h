/* What a library offers so that `outcore bench irregular --peers` can let it take turns with outcore.
 *
 * The bench builds each library of this directory with the C compiler of its own MPI and loads it into
 * its own processes. All ranks of MPI_COMM_WORLD call open, move and close together.
 */

/* A file of so many doubles in global order, of which this rank owns some, in any order. */
struct irregular { const char *file; long elements, count; const int *own; };

/* How many ways the library has, and what they are called. */
int peer_ways(void);
const char *peer_name(int way);
/* Opens the file and makes what is kept for all reads and writes: the plan; NULL if it cannot. */
void *peer_open(const struct irregular *what, int way);
/* Reads or writes this rank's elements, in the order in which it owns them; 0 if it could. */
int peer_move(void *peer, double *values, int write);
void peer_close(void *peer);
