/* What a library offers so that `outcore bench redistribute --peers` can let it take turns with outcore.
 *
 * The bench builds each library of this directory with the C compiler of its own MPI and loads it into
 * its own processes. All ranks of MPI_COMM_WORLD call open, move and close together.
 */

/* A matrix of doubles, column by column, before and after: rows x columns in blocks of block[0] x block[1]
 * on a grid of grid[0] x grid[1] ranks, which are numbered column by column, too. */
struct side { long block[2]; int grid[2]; };
struct redistribution { long extent[2]; struct side before, after; };

/* How many ways the library has, and what they are called. */
int peer_ways(void);
const char *peer_name(int way);
/* What moves the matrix, tables included; NULL if it cannot. */
void *peer_open(const struct redistribution *what, int way);
/* Moves this rank's part; 0 if it could. */
int peer_move(void *peer, const double *source, double *target);
void peer_close(void *peer);
