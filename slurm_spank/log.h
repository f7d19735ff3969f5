/* The log: Slurm's in the plugin (sar_spank.c), stderr in sar-notify (sar_notify.c). */
#ifndef SAR_LOG_H
#define SAR_LOG_H

void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
