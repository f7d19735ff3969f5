-- Writes `--sar-traffic=ring` into the job's comment as `sar:ring`, where the agent finds it each time it
-- reads the queue: so a lost event, or an agent that was away, forgets no hint. JobSubmitPlugins=lua.
-- A comment that already has a `sar:` stays as it is.

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
