/* Where each save of the job writes over the last one (launch.keep), moe-ckpt keeps a copy of
 * the last whole one while the ranks run. It is a process of its own, as the job's user: the
 * files lie on his file systems, and a copy takes its time. It ends when the other end of its
 * standard input closes, with this process, and is killed with the step. What it saw whole it
 * tells the first rank's notify socket. */
#include "agent/stepd/keeper.h"

#include <errno.h>
#include <string.h>

#include "agent/stepd/heartbeat.h"
#include "agent/stepd/helper.h"
#include "agent/stepd/process.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/model/message.h"
#include "lib/wire/encode.h"

static char *order_of(const struct launch *l)
{
	struct mo_buf text = { 0 };
	struct command c;
	mo_desc_init(&command_desc, &c);
	c.kind = CMD_SCAN;
	c.dir = container_on_node(l->container, l->checkpoint_dir);
	c.layout = mo_desc_dup(&ckpt_layout_desc, l->keep);
	wire_encode(&command_desc, &c, &text);
	mo_desc_done(&command_desc, &c);
	return mo_buf_take(&text);
}

void keeper_start(struct stepd *s)
{
	const struct launch *l = &s->spool.launch;
	int life = -1;

	if (!l->keep || !l->checkpoint_dir || process_pipe(0, &life, &s->keeper_fd) < 0)
		return;
	_cleanup_(mo_closep) int theirs = life;
	_cleanup_(mo_freep) char *path = stepd_helper("moe-ckpt"), *order = order_of(l);
	_cleanup_(mo_closep) int socket = notify_connect(s, s->ranks[0].rank);
	char *argv[] = { (char *)"moe-ckpt", (char *)"--keep", order,
			 l->resume >= 0 ? (char *)"--resumed" : NULL, NULL };
	int r = !path        ? -ENOENT
		: socket < 0 ? socket
			     : process_program(&(struct process_program){ .who = &s->who,
									  .path = path,
									  .argv = argv,
									  .in_fd = theirs,
									  .third_fd = socket });

	if (r < 0)
		mo_log(MO_WARNING, NULL, NULL,
		       "no copies are kept of what each save of the job writes over: %s",
		       strerror(-r));
}
