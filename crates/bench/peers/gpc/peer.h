/* What a library offers so that `outcore bench gpc --peers` can let it take turns with outcore.
 *
 * The bench builds the library with the C compiler of its own MPI and loads it into its own processes.
 * All ranks of MPI_COMM_WORLD call open and close together; only rank 0 moves, to and from rank 1, which
 * makes no MPI call meanwhile.
 */

/* A window of so many bytes on each rank, open to all; NULL if there is none. The bytes are those of rank 1. */
void *peer_open(long bytes, const char *content);
/* Reads or writes the first bytes of rank 1's window, and waits until that is done; 0 if it could. */
int peer_move(void *peer, char *buffer, long bytes, int write);
void peer_close(void *peer);
