/* The log: Slurm's in the plugin (sar_spank.c), stderr in sar-notify (sar_notify.c). */
#pragma once

enum log_level { LEVEL_INFO, LEVEL_ERROR };

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define log_info(...)  log_line(LEVEL_INFO, __VA_ARGS__)
#define log_error(...) log_line(LEVEL_ERROR, __VA_ARGS__)
