/* Threads of the plugin and of the library: all signals are for the threads of the program that loads them. */
#pragma once
#include <pthread.h>
#include <signal.h>

/* Starts a thread with all signals blocked; returns 0 or an errno. */
static inline int thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}
