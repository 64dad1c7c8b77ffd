/* Words that rules write into reasons and evidence, and by which views and the shell know those
 * parts again. They are in the records of earlier versions: they never change. */
#pragma once

/* What begins with it, of a failure's evidence, is a sensor's value (readings.c), no line of
 * output. */
#define READING_PREFIX "reading: "
/* What follows it, in a job's reason, is a line of its ranks' output. */
#define SAID "; it said: "
/* What follows it, in job.exec, is the command of a user. */
#define COMMAND_IS "; it is: "
/* How the reason of a job begins whose ranks ended well before its last iteration. */
#define ENDED_EARLY "ended early at "
