-- For JobSubmitPlugins=lua: writes `--sar-traffic=ring` into the comment of the job as `sar:ring`. The agent
-- finds the hint there each time it reads the queue, so neither a lost event nor a restart loses it.
-- A comment that already contains `sar:` is not changed.

local function traffic_of(job_desc)
  for _, entry in pairs(job_desc.spank_job_env or {}) do
    local traffic = string.match(entry, "SAR_TRAFFIC=([%w_.:=+-]+)$")
    if traffic then return traffic end
  end
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  local traffic = traffic_of(job_desc)
  local comment = job_desc.comment or ""
  if traffic and not string.find(comment, "sar:", 1, true) then
    job_desc.comment = comment == "" and "sar:" .. traffic or comment .. " sar:" .. traffic
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end
