/*
 * What a client of the plugin's socket sends: any bytes, through the server's own reading and answering. The answer is one line of
 * printable ASCII that ends. OpenSM and what it does are stand-ins; some of them quote a node description of any bytes.
 */
#include "../requests.c"
#include "../socket_server.c"

static char description[256];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

bool reload(struct bridge *b, uint64_t generation, const char *proved_from, struct reason *why)
{
	(void)b;
	REASON(why, "stand-in: %ju from %s, %s", (uintmax_t)generation, proved_from, description);
	return generation % 2;
}

static bool write_it(struct bridge *b, char more[MORE_SIZE], struct reason *why)
{
	(void)b;
	snprintf(more, MORE_SIZE, "\"digest\":1");
	REASON(why, "stand-in: %s", description);
	return *description != '!';
}

bool dump_in_force(struct bridge *b, char more[MORE_SIZE], struct reason *why)
{
	return write_it(b, more, why);
}

bool fabric_write(struct bridge *b, char more[MORE_SIZE], struct reason *why)
{
	return write_it(b, more, why);
}

bool notice_raise(struct bridge *b, const struct notice *notice, unsigned *subscribed, struct reason *why)
{
	(void)b, (void)notice, (void)why;
	*subscribed = 1;
	return true;
}

const char *state_name(struct bridge *b)
{
	return (void)b, "built";
}

double tables_head_of_queue(const osm_subn_opt_t *options)
{
	return (void)options, 1;
}

bool sigusr2_take(void)
{
	return false;
}

bool agent_call_decline(struct bridge *b, unsigned number)
{
	return (void)b, number == 7;
}

bool agent_call_listen(struct bridge *b)
{
	return (void)b, true;
}

void agent_call_leave(struct bridge *b)
{
	(void)b;
}

unsigned agent_call_number(struct bridge *b, unsigned answered)
{
	return (void)b, answered + 1 ? answered + 1 : 1; /* a call is under way, so nobody waits for 30 s */
}

void events_follow(struct bridge *b)
{
	(void)b;
}

static void check_answer(const char *json, ssize_t length)
{
	if (length < 0 && errno == ECONNRESET)
		return; /* more bytes than any request has */
	if (length < 0 || (length && (json[length - 1] != '\n' || *json != '{' || json[length - 2] != '}')))
		abort();
	for (ssize_t i = 0; i + 1 < length; i++)
		if (json[i] < ' ' || json[i] > '~')
			abort();
}

/* A request up to the first NUL, which is not sent, then a node description. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static osm_opensm_t osm = {.osm_version = "stand-in"};
	static struct bridge b = {.osm = &osm, .shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .routed = true}};
	const uint8_t *nul = memchr(data, 0, size);
	const size_t length = nul ? (size_t)(nul - data) : size, rest = nul ? size - length - 1 : 0;
	struct server server = {.bridge = &b, .stop = -1};
	char json[ANSWER_SIZE + 1];
	int ends[2];

	memset(description, 0, sizeof(description));
	if (rest)
		memcpy(description, nul + 1, rest < sizeof(description) ? rest : sizeof(description) - 1);
	snprintf(b.shared.last_error.text, sizeof(b.shared.last_error.text), "%s", description);
	snprintf(b.options.dump_path, sizeof(b.options.dump_path), "%s", description);
	snprintf(b.options.fabric_path, sizeof(b.options.fabric_path), "%s", description);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || send(ends[0], data, length, 0) != (ssize_t)length ||
	    shutdown(ends[0], SHUT_WR))
		exit(2);
	serve(&server, ends[1]);
	check_answer(json, recv(ends[0], json, sizeof(json), MSG_WAITALL));
	close(ends[0]);
	return 0;
}
